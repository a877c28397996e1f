"""Rules of claims: from findings to verdicts."""

from dataclasses import dataclass

from replication.claims.finding import DEPENDS, FAILS, HOLDS, UNDECIDED, UNTESTED, Effect, Finding


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

    def of_all(self, effects: list[Effect], budgets: int = 1) -> tuple[str, Effect]:
        """Return the common verdict of several effects, and the deciding effect.

        One failing effect makes the verdict ``fails``. Any of several effects could fail by chance, so it has to fail with the
        interval of Holm's correction. All have to hold, each with its own interval. Of the effects with the common verdict, the
        one farthest from holding decides.

        Parameters
        ----------
        effects : list of Effect
            At least one effect.
        budgets : int
            Number of budgets of which any could decide by chance.
        """
        corrected = [effect.among(len(effects) * budgets) for effect in effects]
        if failing := [effect for effect in corrected if self.verdict(effect) == FAILS]:
            return FAILS, min(failing, key=self.margin)
        # An effect that fails alone, but not among the others, is shown with the interval that leaves it undecided.
        unsure = [
            wide if self.verdict(own) == FAILS else own
            for own, wide in zip((effect.among(budgets) for effect in effects), corrected, strict=True)
            if self.verdict(own) != HOLDS
        ]
        return (UNDECIDED, min(unsure, key=self.margin)) if unsure else (HOLDS, min(effects, key=self.margin))

    def judge(self, finding: Finding) -> tuple[str, Effect | None]:
        """Return the verdict of a finding and the deciding effect; ``untested`` if a needed comparison is missing.

        A claim about several budgets holds, or fails, if it does at each of them. If it holds at one and fails at another, even
        with simultaneous intervals, it depends on the budget.
        """
        if not finding.at:
            return self._at_one(finding)
        judged = [self._at_one(one) for one in finding.at.values()]
        verdicts = {verdict for verdict, _ in judged}
        common = verdicts.pop() if len(verdicts) == 1 else UNTESTED if UNTESTED in verdicts else UNDECIDED
        if {HOLDS, FAILS} <= {verdict for verdict, _ in judged}:
            judged = [self._at_one(one, len(finding.at)) for one in finding.at.values()]
            common = DEPENDS if {HOLDS, FAILS} <= {verdict for verdict, _ in judged} else common
        effects = [effect for verdict, effect in judged if effect and common in (verdict, DEPENDS, UNDECIDED)]
        return common, min(effects, key=self.margin, default=None)

    def _at_one(self, finding: Finding, budgets: int = 1) -> tuple[str, Effect | None]:
        if not finding.effects:
            return UNTESTED, None
        verdict, deciding = self.of_all(finding.effects, budgets)
        return (UNTESTED, None) if finding.missing and verdict != FAILS else (verdict, deciding)
