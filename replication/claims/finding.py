"""What the test of a claim finds, and the verdict that follows from it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from replication.claims.band import Band

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
NOT_COMPARABLE, UNTESTED = "not comparable", "untested"
VERDICTS = (HOLDS, FAILS, UNDECIDED, NOT_COMPARABLE, UNTESTED)
#: The interval of what was measured on one model and would differ in the next: nothing is known of by how much.
UNKNOWN = (-math.inf, math.inf)


@dataclass(frozen=True)
class Effect:
    """One number that a claim is about.

    Attributes
    ----------
    what : str
        What is compared: which corpus, which methods.
    value : float
        In the claim's unit.
    interval : tuple of float, optional
        95 % confidence interval, perhaps :data:`UNKNOWN`; None of a number that is exact or counted.
    n : str
        The population that the interval is about, and what it varies over.
    where : str
        Sparsities at which it was compared, for curves.
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
    """Every effect that a claim asks for: it holds if all of them do.

    Attributes
    ----------
    effects : list of Effect
    notes : list of str
        Further numbers, in words.
    missing : list of str
        Comparisons that the claim needs and the run lacks. With one missing, a claim can still fail but not hold.
    """

    effects: list[Effect]
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def of_numbers(self) -> "Finding":
        """Without effects that are no numbers, which a mean over nothing is: a note says so."""
        known = [effect for effect in self.effects if math.isfinite(effect.value)]
        unknown = [f"{effect.what}: nothing to compare" for effect in self.effects if not math.isfinite(effect.value)]
        return Finding(known, self.notes, [*self.missing, *unknown])

    def as_printed(self) -> "Finding":
        """With the numbers of one model taken for what a paper says they are."""
        effects = [replace(one, interval=None) if one.interval == UNKNOWN else one for one in self.effects]
        return replace(self, effects=effects)


@dataclass(frozen=True)
class Rule:
    """An effect has to be ``>=`` or ``<=`` a threshold."""

    relation: str
    threshold: float

    def __post_init__(self) -> None:
        if self.relation not in (">=", "<="):
            raise ValueError(f"relation: >= or <=, got {self.relation!r}")

    def margin(self, effect: Effect) -> float:
        """How far the effect is on the claim's side of the threshold."""
        distance = effect.value - self.threshold
        return distance if self.relation == ">=" else -distance

    def verdict(self, effect: Effect) -> str:
        """Undecided if the interval contains the threshold; of what is exact or counted, the number decides."""
        if effect.interval is not None and effect.interval[0] < self.threshold < effect.interval[1]:
            return UNDECIDED
        return HOLDS if self.margin(effect) >= 0 else FAILS

    def of_all(self, effects: list[Effect]) -> tuple[str, Effect]:
        """The verdict on all of them together, and the effect that decides: the one farthest from holding.

        One that fails decides; else one that is undecided.
        """
        verdicts = [self.verdict(effect) for effect in effects]
        verdict = next(v for v in (FAILS, UNDECIDED, HOLDS) if v in verdicts)
        deciding = [effect for effect, own in zip(effects, verdicts, strict=True) if own == verdict]
        return verdict, min(deciding, key=self.margin)


#: From the folder of a task's results, and the claim's band if it has one; None where the claim cannot be tested on them.
Test = Callable[..., Finding | None]


def together(findings: dict[str, Finding]) -> Finding:
    """Return the effects of several corpora as one finding, each named by its corpus."""
    return Finding(
        [replace(e, what=f"{name}: {e.what}") for name, finding in findings.items() for e in finding.effects],
        [f"{name}: {note}" for name, finding in findings.items() for note in finding.notes],
        [f"{name}: {missing}" for name, finding in findings.items() for missing in finding.missing],
    )


def registering(tests: dict[str, Test]) -> Callable[[str], Callable[[Test], Test]]:
    """A decorator that enters a test under the id of its claim."""

    def claim(name: str) -> Callable[[Test], Test]:
        def register(test: Test) -> Test:
            tests[name] = test
            return test

        return register

    return claim


def in_every(tests: dict[str, Test], pattern: str) -> Callable[[str], Callable[[Test], Test]]:
    """As :func:`registering`, for tests of one corpus: each folder that matches is tested, and has to hold."""

    def claim(name: str) -> Callable[[Test], Test]:
        def register(test: Test) -> Test:
            def tested(folder: Path, *band: Band) -> Finding:
                found = {}
                for path in sorted(folder.glob(pattern)):
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
