"""Rules that select what a model attends to: recall and drift against how many pairs are left out."""

import pandas as pd
from matplotlib.axes import Axes

from replication.plots.style import BLUE, BROWN, GREEN, GREY, INDIGO, SKY, VERMILLION, YELLOW
from replication.results import RULES, front

#: Sparsefinder's are drawn through, the rivals' dashed, the oracle's dotted.
_STYLES = {
    "oracle": (":", "", "black"),
    "sparsefinder-distance": ("-", "o", BLUE),
    "sparsefinder-kmeans": ("-", "s", VERMILLION),
    "sparsefinder-v2": ("-", "D", YELLOW),
    "gate": ("--", "^", GREEN),
    "quest": ("--", "v", BROWN),
    "xattention": ("--", "P", INDIGO),
    "vertical-slash": ("--", "*", SKY),
    "streaming-llm": ("--", "X", GREY),
}


def rules(axes: Axes, points: pd.DataFrame, measure: str, x: str = "sparsity") -> None:
    """A measure of every rule against ``x``, the Pareto front of its points; less is better for ``drift``.

    ``points``: those of :func:`replication.results.rule_points`. Heads that were tuned one by one are stars.
    """
    better = points.assign(score=-points[measure] if measure == "drift" else points[measure])
    fronts = front(better[better["method"].isin(RULES)], "score").assign(visited=lambda table: 1 - table["sparsity"])
    for method, (line, marker, color) in _STYLES.items():
        curve = fronts[fronts["method"] == method]
        if len(curve):
            axes.plot(curve[x], curve[measure], line, marker=marker, color=color, label=RULES[method])
    tuned = points[points["method"] == "sparsified"].assign(visited=lambda table: 1 - table["sparsity"])
    if len(tuned):
        axes.plot(tuned[x], tuned[measure], "*", color="black", markersize=8, label="each head tuned")
