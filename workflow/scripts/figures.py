"""Draw the figures that compare stored runs: python workflow/scripts/figures.py"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from replication import plots
from replication.files.paths import ROOT
from replication.plots.forest import forest
from replication.points import over_heads
from replication.results import read_sweep
from replication.tables.claims import DECIDED, findings
from replication.tables.initialisation import RUNS

FOLDER = ROOT / "reported" / "figures"
#: Range of shares of the pairs around the gold graphs'.
NEAR_GOLD = (0.01, 0.5)


def main() -> None:
    plots.use_style()
    plots.save(forest(decided()), FOLDER, "verdicts")
    plots.save(initialisations(), FOLDER, "initialisation")


def decided() -> pd.DataFrame:
    """Return the findings that some run decides, in the order of the ledger, with a row for each such run."""
    tables = findings()
    rows = pd.concat([table.reset_index().assign(run=run) for run, table in tables.items()])
    order = {claim: number for number, claim in enumerate(next(iter(tables.values())).index)}
    rows = rows[rows["verdict"].isin(DECIDED)]
    return rows.assign(verdict=rows["counts_as"]).sort_values("id", key=lambda ids: ids.map(order), kind="stable")


def initialisations() -> Figure:
    """Return the curves of encoders that start from different weights."""
    figure, axes = plt.subplots(2, len(RUNS) // 2, figsize=(plots.TEXT, 4.8), sharex=True, sharey=True)
    for ax, (run, weights) in zip(axes.T.flat, RUNS.items(), strict=True):
        sweep = over_heads(read_sweep(ROOT / "reported" / run / "masked_lm"))
        plots.tradeoff(ax, sweep, "recall", 1 - sweep.gold_sparsity.mean())
        ax.set(title=weights, xlim=NEAR_GOLD, ylim=(-0.02, 1.02))
        ax.label_outer()
    for ax in axes[:, 0]:
        ax.set(ylabel="recall of gold edges")
    plots.legend_below(figure, axes[0][-1])
    return figure


if __name__ == "__main__":
    main()
