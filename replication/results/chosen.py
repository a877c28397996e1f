"""Settings under which a model itself is evaluated: those next to each budget, chosen by their recall."""

from collections.abc import Iterable

import pandas as pd

from replication.results.budgets import NEAR, Budget

#: Factor by which masks in lower layers may raise the shares in higher ones: chosen points stay on their side of a budget.
RISE = 1.1


def chosen(points: pd.DataFrame, budgets: Iterable[Budget]) -> set[tuple[str, str, int]]:
    """Return each method's best settings just below and just above every budget, and its sparsest one if it starts above one.

    Parameters
    ----------
    points : DataFrame
        ``method``, ``setting``, ``window``, ``recall`` and ``sparsity`` of a recall sweep.
    budgets : iterable of Budget
        Shares of the pairs.

    Returns
    -------
    set of tuple
        ``(method, setting, window)``: of the points on each side of a budget within
        :data:`~replication.results.budgets.NEAR`, the one with the highest recall. Points that a :data:`RISE` of their share
        may take to the other side, or too far from the budget, count only if there are no others.

    Examples
    --------
    >>> points = pd.DataFrame({"method": "window", "setting": "", "window": [1, 3, 5, 7], "recall": [0.1, 0.2, 0.3, 0.4],
    ...                        "sparsity": [0.97, 0.92, 0.88, 0.5]})
    >>> sorted(chosen(points, [Budget(0.1, "10 %")]))
    [('window', '', 3), ('window', '', 5)]
    """
    found = set()
    for _, rows in points.assign(share=1 - points["sparsity"]).groupby("method"):
        for budget in budgets:
            below = _best(rows.assign(apart=budget.share / rows["share"]), (RISE, NEAR))
            above = _best(rows.assign(apart=rows["share"] / budget.share), (1, NEAR / RISE))
            found |= below | above if below and above else set()
            if rows["share"].min() > budget.share:
                found |= _keys(rows.sort_values(["share", "window"]).head(1))
    return found


def _best(rows: pd.DataFrame, preferred: tuple[float, float]) -> set[tuple[str, str, int]]:
    """Return the point with the highest recall among those `apart` from a budget by a preferred factor, or up to NEAR."""
    for least, most in (preferred, (1, NEAR)):
        between = rows[rows["apart"].between(least, most)]
        if len(between):
            return _keys(between.sort_values("recall").tail(1))
    return set()


def _keys(rows: pd.DataFrame) -> set[tuple[str, str, int]]:
    return set(rows[["method", "setting", "window"]].itertuples(index=False, name=None))
