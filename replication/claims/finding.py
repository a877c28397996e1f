"""Effects and findings of claim tests."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from replication.files.verification import listed_files

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
#: A claim that holds at one budget and fails at another.
DEPENDS = "depends on the budget"
NOT_COMPARABLE, UNTESTED = "not comparable", "untested"
VERDICTS = (HOLDS, FAILS, DEPENDS, UNDECIDED, NOT_COMPARABLE, UNTESTED)
#: Verdicts that say something about the claim.
SETTLED = (HOLDS, FAILS, DEPENDS)
#: Interval of a number measured on one model: how much other models would differ is unknown.
UNKNOWN = (-math.inf, math.inf)


@dataclass(frozen=True)
class Effect:
    """Measured number that a claim is about.

    Attributes
    ----------
    what : str
        Name of the comparison: corpus and methods.
    value : float
        In the claim's unit.
    interval : tuple of float, optional
        95 % confidence interval, or :data:`UNKNOWN`; None if the number is exact or counted.
    n : str
        Population that the interval refers to, and what it varies over.
    where : str
        Compared budget, for curves.
    draws : tuple of float
        The measured number under each seed, of each model, or in each repeat; `value` is their mean.
    over : str
        Kind of the draws, such as ``model``.
    interval_at : callable, optional
        Function from a confidence to the interval, for several comparisons at once.
    """

    what: str
    value: float
    interval: tuple[float, float] | None
    n: str
    where: str = ""
    draws: tuple[float, ...] = ()
    over: str = ""
    interval_at: Callable[[float], tuple[float, float]] | None = field(default=None, compare=False, repr=False)

    def among(self, comparisons: int, error: float = 0.05) -> "Effect":
        """Return the effect with the interval that it has among several comparisons, as in Holm's first step."""
        if comparisons < 2 or self.interval_at is None or self.interval in (None, UNKNOWN):
            return self
        wider = self.interval_at(1 - error / comparisons)
        return replace(self, interval=wider, n=f"{self.n}; Holm, {comparisons} comparisons")

    def without(self, over: str, draw: int) -> "Effect":
        """Return the mean of the other draws of a kind as exact; an effect with fewer than three of them keeps its value."""
        others = [*self.draws[:draw], *self.draws[draw + 1 :]]
        is_drawn = self.over == over and len(self.draws) > 2
        return replace(self, value=sum(others) / len(others) if is_drawn else self.value, interval=None)


@dataclass(frozen=True)
class Finding:
    """Result of a claim's test: the claim holds if all effects do, at every budget if there are several.

    Attributes
    ----------
    effects : list of Effect
        All effects that the claim needs.
    notes : list of str
        Further numbers, in words.
    missing : list of str
        Needed comparisons that the run lacks. With one missing, a claim can fail but not hold.
    at : dict
        By budget, the finding there, for claims about curves. `effects` and `missing` are then empty.
    perturbed : callable, optional
        Function that returns the findings under other choices, by their names.
    """

    effects: list[Effect]
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    at: dict[str, "Finding"] = field(default_factory=dict)
    perturbed: Callable[[], dict[str, "Finding"]] | None = field(default=None, compare=False, repr=False)

    def of_numbers(self) -> "Finding":
        """Return the finding without effects that are not finite, such as empty means, which become ``missing``."""
        known = [effect for effect in self.effects if math.isfinite(effect.value)]
        unknown = [f"{effect.what}: nothing to compare" for effect in self.effects if not math.isfinite(effect.value)]
        at = {budget: finding.of_numbers() for budget, finding in self.at.items()}
        return replace(self, effects=known, missing=[*self.missing, *unknown], at=at)

    def as_printed(self) -> "Finding":
        """Return the finding with the numbers of single models as exact."""
        effects = [replace(one, interval=None) if one.interval == UNKNOWN else one for one in self.effects]
        return replace(self, effects=effects)

    def without(self, over: str, draw: int) -> "Finding":
        """Return the finding without one draw of a kind, in each effect that has three, with all numbers as exact.

        Intervals would be wider for lack of draws alone.
        """
        effects = [effect.without(over, draw) for effect in self.effects]
        at = {budget: found.without(over, draw) for budget, found in self.at.items()}
        return replace(self, effects=effects, at=at)

    def every_effect(self) -> list[Effect]:
        """Return the effects at all budgets."""
        return [*self.effects, *(effect for finding in self.at.values() for effect in finding.effects)]

    def every_missing(self) -> list[str]:
        """Return the missing comparisons at all budgets, each once."""
        return list(dict.fromkeys([*self.missing, *(one for finding in self.at.values() for one in finding.missing)]))


#: Function from a task's folder, and the names of the claim's budgets if it has any, to a finding, or None if the claim cannot
#: be tested.
Test = Callable[..., Finding | None]


def together(findings: dict[str, Finding]) -> Finding:
    """Merge the findings of several corpora into one, with each entry prefixed by its corpus."""
    budgets = dict.fromkeys(budget for finding in findings.values() for budget in finding.at)
    merged = Finding(
        [replace(e, what=f"{name}: {e.what}") for name, finding in findings.items() for e in finding.effects],
        [f"{name}: {note}" for name, finding in findings.items() for note in finding.notes],
        [f"{name}: {missing}" for name, finding in findings.items() for missing in finding.missing],
        {
            budget: together({name: finding.at[budget] for name, finding in findings.items() if budget in finding.at})
            for budget in budgets
        },
    )
    perturbed = {name: finding.perturbed for name, finding in findings.items() if finding.perturbed}
    return replace(merged, perturbed=lambda: _perturbed_together(perturbed)) if perturbed else merged


def _perturbed_together(perturbed: dict[str, Callable[[], dict[str, Finding]]]) -> dict[str, Finding]:
    of_corpora = {name: find() for name, find in perturbed.items()}
    choices = dict.fromkeys(choice for found in of_corpora.values() for choice in found)
    return {
        choice: together({name: found[choice] for name, found in of_corpora.items() if choice in found})
        for choice in choices
    }


def registering(tests: dict[str, Test]) -> Callable[[str], Callable[[Test], Test]]:
    """Return a decorator factory that adds a test to ``tests`` under the id of its claim."""

    def claim(name: str) -> Callable[[Test], Test]:
        def register(test: Test) -> Test:
            tests[name] = test
            return test

        return register

    return claim


def in_every(tests: dict[str, Test], pattern: str) -> Callable[[str], Callable[[Test], Test]]:
    """Return a decorator factory like :func:`registering`, for tests of one corpus; each matching folder must hold."""

    def claim(name: str) -> Callable[[Test], Test]:
        def register(test: Test) -> Test:
            tests[name] = of_every(test, pattern)
            return test

        return register

    return claim


def of_every(test: Test, pattern: str) -> Test:
    """Return the test of all corpora in a task's folder, from the test of one corpus; each matching folder must hold."""

    def tested(folder: Path, *budgets: list[str]) -> Finding:
        found = {}
        for path in listed_files(folder, pattern):
            try:
                finding = test(path, *budgets)
            except FileNotFoundError:
                continue
            if finding is not None:
                found[path.name] = finding
        return together(found)

    return tested
