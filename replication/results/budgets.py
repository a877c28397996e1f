"""Budgets, shares of the visible pairs that a method computes, and what a method's settings reach with them."""

import re
from dataclasses import dataclass

import numpy as np

from replication.config.budgets import Budgets

#: A method is measured at a budget if it has points on both sides of it within this factor.
NEAR = 1.25
#: Larger budgets save too little to be compared.
MOST = 0.5


@dataclass(frozen=True, order=True)
class Budget:
    """Share of the visible pairs that a method may compute.

    Attributes
    ----------
    share : float
        Share of the pairs.
    name : str
        ``2 x gold``, or ``10 %``.
    """

    share: float
    name: str

    def __str__(self) -> str:
        return f"{100 * self.share:.3g} % of the pairs" + (f" ({self.name})" if "gold" in self.name else "")


def budgets_of(gold: float, settings: Budgets) -> list[Budget]:
    """Return all budgets up to :data:`MOST`, by their share.

    Parameters
    ----------
    gold : float
        Share of the pairs in the gold graph; NaN if there is none, which leaves out its multiples.
    settings : Budgets
        Section ``budgets`` of the configuration.

    Examples
    --------
    >>> [budget.name for budget in budgets_of(0.04, Budgets(gold_multiples=[1, 2, 20], shares=[0.05, 0.5]))]
    ['1 x gold', '5 %', '2 x gold', '50 %']
    """
    multiples = [Budget(multiple * gold, f"{multiple:g} x gold") for multiple in settings.gold_multiples]
    found = [*multiples, *(Budget(share, f"{100 * share:g} %") for share in settings.shares)]
    return sorted(budget for budget in found if budget.share <= MOST + 1e-9)


def deciding(text: str) -> list[str]:
    """Return the names of the budgets in a text like ``1, 2, 5 x gold`` or ``20, 50 %``, which decide a claim.

    Raises
    ------
    ValueError
        If the text has neither form.

    Examples
    --------
    >>> deciding("1, 2 x gold")
    ['1 x gold', '2 x gold']
    """
    matched = re.fullmatch(r"([0-9.]+(?:, [0-9.]+)*) (x gold|%)", text)
    if not matched:
        raise ValueError(f"`budgets` must be like '1, 2, 5 x gold' or '20, 50 %', got {text!r}")
    return [f"{number} {matched[2]}" for number in matched[1].split(", ")]


def is_measured(shares: np.ndarray, budget: float, factor: float = NEAR) -> bool:
    """Return whether some of the shares ``[N]`` lie on each side of a budget, at most a factor from it.

    Examples
    --------
    >>> is_measured(np.array([0.09, 0.12]), 0.1), is_measured(np.array([0.09, 0.2]), 0.1)
    (True, False)
    """
    slack = 1 + 1e-9
    below = (shares <= budget * slack) & (shares * factor * slack >= budget)
    above = (shares * slack >= budget) & (shares <= budget * factor * slack)
    return bool(below.any() and above.any())


def hull_at(shares: np.ndarray, scores: np.ndarray, budget: float) -> np.ndarray:
    """Return the best score within a budget of any mixture of two settings: the concave hull of the points.

    A mixture applies one setting to some sequences and the other to the rest, so shares and scores are averaged.

    Parameters
    ----------
    shares : array ``[N]``
        Shares of the pairs that the settings compute.
    scores : array ``[1 + R, N]``
        Scores, and their resamples; higher is better.
    budget : float
        Share of the pairs.

    Returns
    -------
    array ``[1 + R]``
        NaN if every setting computes more than the budget.

    Examples
    --------
    >>> hull_at(np.array([0.1, 0.3]), np.array([[1.0, 3.0]]), 0.2)
    array([2.])
    """
    within = shares <= budget * (1 + 1e-9)
    if not within.any():
        return np.full(len(scores), np.nan)
    best = scores[:, within].max(axis=1)
    beyond = np.flatnonzero(~within)
    for place in np.flatnonzero(within):
        weights = (budget - shares[place]) / (shares[beyond] - shares[place])
        mixed = scores[:, [place]] + weights.clip(min=0) * (scores[:, beyond] - scores[:, [place]])
        best = np.maximum(best, mixed.max(axis=1, initial=-np.inf))
    return best


def pareto_at(shares: np.ndarray, scores: np.ndarray, budget: float) -> np.ndarray:
    """Return the score at a budget between the neighbouring points that no point dominates, interpolated linearly.

    The arguments and the result are those of :func:`hull_at`.

    Examples
    --------
    >>> pareto_at(np.array([0.1, 0.2, 0.3]), np.array([[0.0, 0.5, 3.0]]), 0.2)
    array([0.5])
    """
    order = np.argsort(shares, kind="stable")
    shares, scores = shares[order], scores[:, order]
    within = int((shares <= budget * (1 + 1e-9)).sum())
    if not within:
        return np.full(len(scores), np.nan)
    left, resamples = scores[:, :within].argmax(axis=1), np.arange(len(scores))
    best = scores[resamples, left]
    better = scores[:, within:] > best[:, None]
    if not better.size:
        return best
    right = within + better.argmax(axis=1)
    weight = (budget - shares[left]) / np.where(shares[right] > shares[left], shares[right] - shares[left], 1.0)
    mixed = best + weight.clip(0, 1) * (scores[resamples, right] - best)
    return np.where(better.any(axis=1), mixed, best)
