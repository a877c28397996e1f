"""Settings under which a model itself is evaluated: those next to each budget, chosen by their recall."""

from collections.abc import Iterable

import pandas as pd

from replication.budgets import NEAR, Budget

#: Factor by which a chosen share should differ from a budget, because masks in lower layers change the shares in higher ones.
APART = 1.05


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
        ``(method, setting, window)``: of the points on each side of a budget within :data:`~replication.budgets.NEAR`, the one
        with the highest recall; points that lie closer than :data:`APART` only if there are no others.

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
            below = _best(rows, budget.share / NEAR, budget.share / APART, budget.share)
            above = _best(rows, budget.share * NEAR, budget.share * APART, budget.share)
            found |= below | above if below and above else set()
            if rows["share"].min() > budget.share:
                found |= _keys(rows.sort_values(["share", "window"]).head(1))
    return found


def _best(rows: pd.DataFrame, far: float, apart: float, budget: float) -> set[tuple[str, str, int]]:
    for near in (apart, budget):
        between = rows[rows["share"].between(*sorted((far, near)))]
        if len(between):
            return _keys(between.sort_values("recall").tail(1))
    return set()


def _keys(rows: pd.DataFrame) -> set[tuple[str, str, int]]:
    return set(rows[["method", "setting", "window"]].itertuples(index=False, name=None))
