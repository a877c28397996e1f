"""Rules that select what a model attends to: recall and drift against how many pairs are left out."""

import pandas as pd
from matplotlib.axes import Axes

from replication.methods import RULES
from replication.results import front


def rules(axes: Axes, points: pd.DataFrame, measure: str, x: str = "sparsity") -> None:
    """A measure of every rule against ``x``, the Pareto front of its points; less is better for ``drift``.

    ``points``: those of :func:`replication.results.rule_points`. Heads that were tuned one by one are stars.
    """
    better = points.assign(score=-points[measure] if measure == "drift" else points[measure])
    fronts = front(better[better["method"].isin(RULES)], "score").assign(visited=lambda table: 1 - table["sparsity"])
    for name, rule in RULES.items():
        curve = fronts[fronts["method"] == name]
        if len(curve):
            axes.plot(curve[x], curve[measure], label=rule.label, **rule.style)
    tuned = points[points["method"] == "sparsified"].assign(visited=lambda table: 1 - table["sparsity"])
    if len(tuned):
        axes.plot(tuned[x], tuned[measure], "*", color="black", markersize=8, label="each head tuned")
