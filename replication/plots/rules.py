"""Selection rules: recall and drift by sparsity."""

import pandas as pd
from matplotlib.axes import Axes

from replication.methods import RULES
from replication.points import front


def rules(axes: Axes, points: pd.DataFrame, measure: str, x: str = "sparsity") -> None:
    """Draw each rule's Pareto front of a measure and sparsity; tuned heads are stars.

    Parameters
    ----------
    axes : Axes
        Panel to draw into.
    points : DataFrame
        Rows of :func:`replication.points.rule_points`.
    measure : str
        Column to draw; lower is better for ``drift``, higher for others.
    x : str
        ``sparsity``, or ``visited`` for its complement.
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
