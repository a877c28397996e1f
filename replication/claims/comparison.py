"""Comparison of methods at equal budgets: effects at the budgets that decide, and where each method is ahead of the others."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np

from replication.claims.curves import Curves
from replication.claims.finding import UNKNOWN, Effect, Finding
from replication.claims.scores import CONFIDENCE, effect, interval
from replication.claims.settings import sparser
from replication.results.budgets import Budget


def leads(compared: Curves, leaders: list[str], rivals: list[str], names: list[str]) -> Finding:
    """Return each leader's difference to each rival at the budgets that decide.

    Parameters
    ----------
    compared : Curves
        Curves of the methods.
    leaders, rivals : list of str
        Methods; each leader is compared to each rival.
    names : list of str
        Names of the budgets that decide. Those that are no budgets of the run, because they are too large, are left out.

    Returns
    -------
    Finding
        Findings by budget. Notes say at which of all budgets a leader is ahead, with simultaneous intervals.
    """
    return with_perturbed(lambda curves: _leads(curves, leaders, rivals, names), compared)


def with_perturbed(compare: Callable[..., Finding], *compared: Curves) -> Finding:
    """Return the finding of curves, with what the same comparison finds under other choices.

    Parameters
    ----------
    compare : callable
        Function from as many curves as are given to a finding.
    compared : Curves
        Curves, whose choices are changed together.
    """

    def perturbed() -> dict[str, Finding]:
        choices = [curves.perturbed() for curves in compared]
        return {name: compare(*(curves[name] for curves in choices)) for name in choices[0]}

    return replace(compare(*compared), perturbed=perturbed)


def _leads(compared: Curves, leaders: list[str], rivals: list[str], names: list[str]) -> Finding:
    absent = [name for name in [*leaders, *rivals] if name not in compared.methods]
    missing = [f"no point of {', '.join(absent)}"] if absent else []
    pairs = [pair for pair in product(leaders, rivals) if not set(pair) & set(absent)]
    budgets = [budget for name in names if (budget := compared.named(name))]
    at = {budget.name: _at(compared, pairs, budget, missing) for budget in budgets}
    notes = [profile(compared, leader, rival) for leader, rival in pairs]
    used = {name: compared.settings[name] for name in [*leaders, *rivals] if name in compared.settings}
    words = variants(used)
    return Finding([], [*notes, *([words] if words else [])], at=at)


def _at(compared: Curves, pairs: list[tuple[str, str]], budget: Budget, missing: list[str]) -> Finding:
    """Return the differences of pairs at a budget."""
    found, lacking = Finding([], missing=list(missing)), {}
    for one, other in pairs:
        place, what = budget, f"{one} - {other}"
        if (ends := _ends(compared, one, other, budget)) and not _both(compared, one, other, budget):
            place, what = ends, f"{what}, as sparse as {' and '.join(sorted(compared.saturated & {one, other}))} gets"
        if _both(compared, one, other, place):
            difference = compared.difference(one, other, place)
            found.effects.append(effect(what, difference, "student seed", compared.units, where=str(place)))
        else:
            lacking |= {name: None for name in (one, other) if not compared.has(name, budget)}
    if lacking:
        words = ", ".join(_lacks(compared, name, budget) for name in lacking)
        found.missing.append(f"at {budget} these have no points on both sides: {words}")
    return found


def _both(compared: Curves, one: str, other: str, budget: Budget) -> bool:
    return compared.has(one, budget) and compared.has(other, budget)


def _ends(compared: Curves, one: str, other: str, budget: Budget) -> Budget | None:
    """Return the smallest budget of a method that no setting makes as sparse as a budget."""
    if all(compared.least(name) <= budget.share for name in compared.saturated & {one, other}):
        return None
    return next(iter(compared.shared(one, other)), None)


def _lacks(compared: Curves, name: str, budget: Budget) -> str:
    """Return a method's name, and where it starts and which settings would reach the budget, if it starts above it."""
    least = compared.least(name)
    if least <= budget.share:
        return name
    return f"{name} (starts at {100 * least:.3g} %, needs {sparser(compared.settings.get(name, {}))})"


def profile(compared: Curves, one: str, other: str) -> str:
    """Return at which budgets a method is ahead of another, level with it or behind it, in words.

    Intervals are simultaneous over all budgets at which both are measured, by Bonferroni's correction.
    """
    shared = compared.shared(one, other)
    if not shared:
        return f"{one} - {other}: measured at no common budget"
    confidence = 1 - (1 - CONFIDENCE) / len(shared)
    places = []
    for budget in reversed(shared):
        difference = compared.difference(one, other, budget)
        low, high = interval(difference, compared.units, confidence)
        place = "ahead of" if low > 0 else "behind" if high < 0 else "level with"
        places.append((place if (low, high) != UNKNOWN else "not decided against", budget))
    runs: list[list] = []
    for place, budget in places:
        if runs and runs[-1][0] == place:
            runs[-1][2] = budget
        else:
            runs.append([place, budget, budget])
    return f"{one}: " + ", ".join(f"{place} {other} {_between(first, last)}" for place, first, last in runs)


def _between(first: Budget, last: Budget) -> str:
    """Return a range of budgets, from the largest to the smallest."""
    return f"at {last}" if first == last else f"from {100 * first.share:.3g} to {last}"


def variants(used: dict[str, dict[str, list[float]]]) -> str:
    """Describe the compared variants of k-means and Reformer, which change a curve and not only its length."""
    words = []
    for name, settings in used.items():
        for argument, one, more in (
            ("top_k", "centroid per point", "centroids per point"),
            ("rounds", "round", "rounds"),
        ):
            if argument in settings:
                values = " or ".join(f"{value:g}" for value in settings[argument])
                words.append(f"{name}: {values} {one if values == '1' else more}")
    return "; ".join(words)


def in_words(found: Effect) -> str:
    """Return an effect with its interval: ``2.46 (1.61 to 3.31)``."""
    low, high = found.interval or UNKNOWN
    return f"{found.value:.3g} ({low:.3g} to {high:.3g})" if np.isfinite(low) else f"{found.value:.3g}"
