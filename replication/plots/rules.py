"""Selection rules: recall and drift by the share of pairs that they compute."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from replication.plots.budgets import draw_curve, share_axis
from replication.predictors.methods import RULES, styled


def rules(axes: Axes, points: pd.DataFrame, measure: str) -> None:
    """Draw each rule's hull of a measure by the share of pairs, with a band over seeds; tuned heads are stars.

    Parameters
    ----------
    axes : Axes
        Panel to draw into.
    points : DataFrame
        Rows of :func:`replication.results.points.rule_points`, by seed.
    measure : str
        Column to draw; lower is better for ``drift``, higher for others.
    """
    sign = -1 if measure == "drift" else 1
    better = points.assign(score=sign * points[measure])
    for name, rule in styled(points["method"], RULES).items():
        draw_curve(axes, better[better["method"] == name], "score", rule, lambda score: np.multiply(sign, score))
    tuned = points[points["method"] == "sparsified"]
    if len(tuned):
        axes.plot(1 - tuned["sparsity"], tuned[measure], "*", color="black", markersize=8, label="each head tuned")
    share_axis(axes, (1 - points["sparsity"]).clip(lower=1e-3).min())
