"""Descriptions of what would change a verdict."""

import math

from replication.claims.finding import DEPENDS, FAILS, HOLDS, UNKNOWN, Effect
from replication.claims.rule import Rule

#: Larger numbers of draws are not suggested.
MANY = 1000


def changing(rule: Rule, effect: Effect, verdict: str) -> str:
    """Return what would change a claim's verdict, in words: another effect, or a narrower interval.

    >>> changing(Rule(">=", 0.0), Effect("it", 0.5, (-0.5, 1.5), "such models: 3 models", draws=(0.0, 0.5, 1.0)), "undecided")
    'an interval without 0: about 12 draws in place of 3, if the effect and its spread stay'
    """
    threshold = f"{rule.threshold:g}"
    if verdict == DEPENDS:
        return "another budget"
    if effect.interval == UNKNOWN:
        draw = effect.n.partition(": ")[2].partition(" x ")[0].removeprefix("1 ")
        return f"a second {draw}: one has no interval"
    if effect.interval is None:
        beyond = rule.relation == ">=" if verdict == HOLDS else rule.relation == "<="
        return f"an effect {'below' if beyond else 'above'} {threshold}"
    low, high = effect.interval
    if verdict in (HOLDS, FAILS):
        nearest = min((low, high), key=lambda end: abs(end - rule.threshold))
        return f"an interval that contains {threshold}: it ends at {nearest:.3g}"
    half, distance = (high - low) / 2, abs(effect.value - rule.threshold)
    given = len(effect.draws)
    draws = math.ceil(given * (half / distance) ** 2) if distance and given else MANY + 1
    if draws > MANY:
        return f"an interval without {threshold}: the effect is too close to it for more draws to help"
    return (
        f"an interval without {threshold}: about {draws} draws in place of {given}, if the effect and its spread stay"
    )
