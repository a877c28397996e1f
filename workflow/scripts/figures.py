"""Draw the figures that compare stored runs: python workflow/scripts/figures.py"""

import json
from base64 import b64decode

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from replication import plots
from replication.files.paths import ROOT
from replication.plots.forest import forest
from replication.predictors.methods import BLUE, GREY, VERMILLION
from replication.results.measurements import read_sweep
from replication.results.points import over_heads
from replication.tables.claims import DECIDED, findings, published
from replication.tables.initialisation import RUNS
from sparselib.predictors import Distance

FOLDER = ROOT / "reported" / "figures"
#: Range of shares of the pairs around the gold graphs'.
NEAR_GOLD = (0.01, 0.5)


def main() -> None:
    plots.use_style()
    plots.save(forest(decided()), FOLDER, "verdicts")
    plots.save(initialisations(), FOLDER, "initialisation")
    plots.save(explored(), FOLDER, "explorer")


def decided() -> pd.DataFrame:
    """Return the findings that some run decides, with their numbers in the ledger and in its order: a row for each such run."""
    rows = pd.concat([table.reset_index() for table in findings().values()])
    numbers = rows["id"].map({claim: number for number, claim in enumerate(published()["id"], 1)})
    rows = rows.assign(number=numbers, statement=numbers.astype(str) + ". " + rows["statement"])
    rows = rows[rows["verdict"].isin(DECIDED)]
    return rows.assign(verdict=rows["counts_as"]).sort_values("number", kind="stable")


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


def explored() -> Figure:
    """Return a picture of the attention explorer's first view: a head's pairs that distances find, miss and add."""
    passage = json.loads((ROOT / "reported/demo/passage.json").read_text(encoding="utf-8"))
    length, dimension = passage["length"], passage["dimension"]
    q, k = (np.frombuffer(b64decode(passage[name]), np.float32)[: length * dimension] for name in ("q", "k"))
    counts = np.frombuffer(b64decode(passage["counts"]), np.uint8)[:length]
    keys = np.frombuffer(b64decode(passage["keys"]), np.uint8)[: counts.sum(dtype=int)]
    gold = np.zeros((length, length), bool)
    gold[np.repeat(np.arange(length), counts), keys] = True
    vectors = (torch.tensor(x).view(1, 1, length, dimension) for x in (q, k))
    predicted = Distance(threshold=1.0).predict(*vectors)[0, 0].numpy()
    figure, axes = plt.subplots(figsize=(plots.COLUMN, plots.COLUMN))
    # Whole squares, squares with a hole, and dots, as on the page.
    shapes = {
        "found": (gold & predicted, {"marker": "s", "s": 1.2, "color": BLUE}),
        "missed": (gold & ~predicted, {"marker": "s", "s": 1.6, "facecolors": "none", "edgecolors": VERMILLION}),
        "superfluous": (predicted & ~gold, {"marker": ".", "s": 0.3, "color": GREY}),
    }
    for name, (pairs, shape) in shapes.items():
        rows, columns = np.nonzero(pairs)
        axes.scatter(columns, rows, linewidths=0.3, label=name, rasterized=True, **shape)
    axes.set(xlabel="key", ylabel="query", xlim=(-1, length), ylim=(length, -1), aspect="equal")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncol=3, markerscale=3)
    return figure


if __name__ == "__main__":
    main()
