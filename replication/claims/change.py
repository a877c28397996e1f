"""What would change a verdict."""

import math

from replication.claims.finding import FAILS, HOLDS, UNKNOWN, Effect, Rule

#: More draws than this are not worth naming.
MANY = 1000


def changing(rule: Rule, effect: Effect, verdict: str) -> str:
    """Say what would change the verdict of a claim: another effect, or a narrower interval.

    >>> changing(Rule(">=", 0.0), Effect("a - b", 0.5, (-0.5, 1.5), "such models: 3 models", draws=3), "undecided")
    'an interval that excludes 0, as about 12 draws in place of 3 would give if the effect and its spread stay'
    """
    threshold = f"{rule.threshold:g}"
    side = {">=": "below", "<=": "above"}[rule.relation]
    if effect.interval == UNKNOWN:
        return "a second draw: one model has no interval"
    if verdict in (HOLDS, FAILS):
        side = side if verdict == HOLDS else {"below": "above", "above": "below"}[side]
        if effect.interval is None:
            return f"an effect {side} {threshold}"
        low, high = effect.interval
        # The end of the interval that is nearest to the threshold.
        nearest = min((low, high), key=lambda end: abs(end - rule.threshold))
        return f"an interval that reaches {side} {threshold}; it ends {abs(nearest - rule.threshold):.2g} from it"
    half, distance = (effect.interval[1] - effect.interval[0]) / 2, abs(effect.value - rule.threshold)
    if distance == 0 or effect.draws == 0:
        return f"an interval that excludes {threshold}"
    draws = math.ceil(effect.draws * (half / distance) ** 2)
    if draws > MANY:
        return f"an interval that excludes {threshold}: the effect is too close to it for any number of draws"
    return (
        f"an interval that excludes {threshold}, as about {draws} draws in place of {effect.draws} would give if the effect"
        " and its spread stay"
    )
