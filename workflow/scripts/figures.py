"""Draw the figures that compare stored runs: python workflow/scripts/figures.py"""

import matplotlib.pyplot as plt

from replication import plots
from replication.files.paths import ROOT
from replication.results import over_heads, over_seeds, read_sweep
from replication.tables.initialisation import RUNS

#: Range of sparsities around the gold graphs'.
NEAR_GOLD = (0.7, 1.0)


def main() -> None:
    plots.use_style()
    figure, axes = plt.subplots(1, len(RUNS), figsize=(plots.TEXT, 2.6), sharey=True, squeeze=False)
    for ax, (run, weights) in zip(axes[0], RUNS.items(), strict=True):
        sweep = over_heads(read_sweep(ROOT / "reported" / run / "masked_lm"))
        plots.tradeoff(ax, over_seeds(sweep), "recall", sweep.gold_sparsity.mean())
        ax.set(title=weights.replace(", ", ",\n"), xlim=NEAR_GOLD, ylabel="")
    axes[0][0].set(ylabel="recall of gold edges", ylim=(-0.02, 1.02))
    plots.legend_below(figure, axes[0][-1])
    plots.save(figure, ROOT / "reported" / "figures", "initialisation")


if __name__ == "__main__":
    main()
