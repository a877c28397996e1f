"""Draw the figures that compare stored runs: python workflow/scripts/figures.py"""

import matplotlib.pyplot as plt

from replication import plots
from replication.files.paths import ROOT
from replication.points import over_heads
from replication.results import read_sweep
from replication.tables.initialisation import RUNS

#: Range of shares of the pairs around the gold graphs'.
NEAR_GOLD = (0.01, 0.5)


def main() -> None:
    plots.use_style()
    figure, axes = plt.subplots(2, len(RUNS) // 2, figsize=(plots.TEXT, 4.8), sharex=True, sharey=True)
    for ax, (run, weights) in zip(axes.T.flat, RUNS.items(), strict=True):
        sweep = over_heads(read_sweep(ROOT / "reported" / run / "masked_lm"))
        plots.tradeoff(ax, sweep, "recall", 1 - sweep.gold_sparsity.mean())
        ax.set(title=weights, xlim=NEAR_GOLD, ylim=(-0.02, 1.02))
        ax.label_outer()
    for ax in axes[:, 0]:
        ax.set(ylabel="recall of gold edges")
    plots.legend_below(figure, axes[0][-1])
    plots.save(figure, ROOT / "reported" / "figures", "initialisation")


if __name__ == "__main__":
    main()
