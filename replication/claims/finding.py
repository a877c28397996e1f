"""Findings of claim tests, and the verdicts that follow from them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from replication.claims.band import Band
from replication.files.verification import listed_files

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
NOT_COMPARABLE, UNTESTED = "not comparable", "untested"
VERDICTS = (HOLDS, FAILS, UNDECIDED, NOT_COMPARABLE, UNTESTED)
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
        Compared sparsities, for curves.
    draws : int
        Number of seeds, models or repeats.
    """

    what: str
    value: float
    interval: tuple[float, float] | None
    n: str
    where: str = ""
    draws: int = 0


@dataclass(frozen=True)
class Finding:
    """Result of a claim's test: the claim holds if all effects do.

    Attributes
    ----------
    effects : list of Effect
        All effects that the claim needs.
    notes : list of str
        Further numbers, in words.
    missing : list of str
        Needed comparisons that the run lacks. With one missing, a claim can fail but not hold.
    """

    effects: list[Effect]
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def of_numbers(self) -> "Finding":
        """Return the finding without effects that are not finite, such as empty means, which become ``missing``."""
        known = [effect for effect in self.effects if math.isfinite(effect.value)]
        unknown = [f"{effect.what}: nothing to compare" for effect in self.effects if not math.isfinite(effect.value)]
        return Finding(known, self.notes, [*self.missing, *unknown])

    def as_printed(self) -> "Finding":
        """Return the finding with the numbers of single models as exact."""
        effects = [replace(one, interval=None) if one.interval == UNKNOWN else one for one in self.effects]
        return replace(self, effects=effects)


@dataclass(frozen=True)
class Rule:
    """Criterion of a claim: the effect must be ``>=`` or ``<=`` a threshold.

    Attributes
    ----------
    relation : str
        ``>=`` or ``<=``.
    threshold : float
        In the claim's unit.
    """

    relation: str
    threshold: float

    def __post_init__(self) -> None:
        if self.relation not in (">=", "<="):
            raise ValueError(f"relation: >= or <=, got {self.relation!r}")

    def margin(self, effect: Effect) -> float:
        """Return the effect's distance from the threshold; positive if the effect meets the criterion."""
        distance = effect.value - self.threshold
        return distance if self.relation == ">=" else -distance

    def verdict(self, effect: Effect) -> str:
        """Return ``undecided`` if the interval contains the threshold; without an interval, the number decides."""
        if effect.interval is not None and effect.interval[0] < self.threshold < effect.interval[1]:
            return UNDECIDED
        return HOLDS if self.margin(effect) >= 0 else FAILS

    def of_all(self, effects: list[Effect]) -> tuple[str, Effect]:
        """Return the common verdict of several effects, and the deciding effect.

        One failing effect makes the verdict ``fails``; otherwise, one undecided effect makes it ``undecided``. Of the effects
        with that verdict, the one farthest from holding decides.
        """
        verdicts = [self.verdict(effect) for effect in effects]
        verdict = next(v for v in (FAILS, UNDECIDED, HOLDS) if v in verdicts)
        deciding = [effect for effect, own in zip(effects, verdicts, strict=True) if own == verdict]
        return verdict, min(deciding, key=self.margin)


#: Function from a task's folder, and the claim's band if it has one, to a finding, or None if the claim cannot be tested.
Test = Callable[..., Finding | None]


def together(findings: dict[str, Finding]) -> Finding:
    """Merge the findings of several corpora into one, with each entry prefixed by its corpus."""
    return Finding(
        [replace(e, what=f"{name}: {e.what}") for name, finding in findings.items() for e in finding.effects],
        [f"{name}: {note}" for name, finding in findings.items() for note in finding.notes],
        [f"{name}: {missing}" for name, finding in findings.items() for missing in finding.missing],
    )


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
            def tested(folder: Path, *band: Band) -> Finding:
                found = {}
                for path in listed_files(folder, pattern):
                    try:
                        finding = test(path, *band)
                    except FileNotFoundError:
                        continue
                    if finding is not None:
                        found[path.name] = finding
                return together(found)

            tests[name] = tested
            return test

        return register

    return claim
