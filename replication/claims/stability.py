"""Stability of verdicts under other choices: half of the settings, the Pareto set, each seed, model or repeat left out."""

from replication.claims.finding import SETTLED, UNDECIDED, UNTESTED, Finding
from replication.claims.rule import Rule

STABLE = "stable"
CHANGES = "changes with "


def stability(rule: Rule, finding: Finding, verdict: str) -> str:
    """Return ``stable``, or the choices that change a verdict and what it becomes with them.

    Parameters
    ----------
    rule : Rule
        Criterion of the claim.
    finding : Finding
        Finding of the verdict, with a function that returns it under other choices.
    verdict : str
        Verdict of the finding.

    Returns
    -------
    str
        Empty if no choice can be changed: the finding does not come from curves, and no effect is a mean over three draws.
        Comparisons that the finding itself lacks are not needed; a comparison that a choice takes away changes the verdict.

    Examples
    --------
    >>> stability(Rule(">=", 0.0), Finding([]), "holds")
    ''
    """
    others = finding.perturbed() if finding.perturbed else {}
    effects = [effect for effect in finding.every_effect() if len(effect.draws) > 2]
    for over in dict.fromkeys(effect.over for effect in effects):
        count = max(len(effect.draws) for effect in effects if effect.over == over)
        others |= {f"{over} {draw + 1} left out": finding.without(over, draw) for draw in range(count)}
    if not others:
        return ""
    changed = {}
    for choice, other in others.items():
        found, _ = rule.judge(other.of_numbers())
        if found != verdict:
            changed.setdefault("not measured" if found == UNTESTED else found, []).append(choice)
    if not changed:
        return STABLE
    return CHANGES + "; ".join(f"{', '.join(choices)}: {found}" for found, choices in changed.items())


def counted(verdict: str, stability: str) -> str:
    """Return a verdict as it counts over runs: a settled one that another choice changes is undecided.

    Examples
    --------
    >>> counted("holds", "changes with the Pareto set: undecided"), counted("holds", "stable")
    ('undecided', 'holds')
    """
    return UNDECIDED if verdict in SETTLED and stability.startswith(CHANGES) else verdict
