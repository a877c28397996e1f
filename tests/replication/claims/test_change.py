"""What would change a verdict."""

import pytest

from replication.claims.change import changing
from replication.claims.finding import UNKNOWN, Effect
from replication.claims.rule import Rule


def effect(value, interval, draws=3):
    return Effect("it", value, interval, "such models", draws=(value,) * draws)


@pytest.mark.parametrize(
    ("relation", "found", "words"),
    [
        (">=", effect(0.5, (0.2, 0.8)), "an interval that contains 0: it ends at 0.2"),
        ("<=", effect(0.5, (0.2, 0.8)), "an interval that contains 0: it ends at 0.2"),
        (">=", effect(-0.5, (-0.8, -0.2)), "an interval that contains 0: it ends at -0.2"),
        (">=", effect(0.5, None), "an effect below 0"),
        (">=", effect(-0.5, None), "an effect above 0"),
        ("<=", effect(-0.5, None), "an effect above 0"),
        ("<=", effect(0.5, None), "an effect below 0"),
        (">=", Effect("it", 0.5, UNKNOWN, "such models: 1 model x 9 words"), "a second model: one has no interval"),
        (">=", Effect("it", 0.5, UNKNOWN, "this machine: 1 repeat"), "a second repeat: one has no interval"),
        (">=", Effect("it", 0.5, UNKNOWN, "this model: 1 student seed"), "a second student seed: one has no interval"),
        (
            ">=",
            effect(0.5, (-0.5, 1.5)),
            "an interval without 0: about 12 draws in place of 3, if the effect and its spread stay",
        ),
        (
            ">=",
            effect(1e-6, (-1.0, 1.0)),
            "an interval without 0: the effect is too close to it for more draws to help",
        ),
        (">=", effect(0.0, (-1.0, 1.0)), "an interval without 0: the effect is too close to it for more draws to help"),
    ],
)
def test_every_verdict_says_what_would_change_it(relation, found, words):
    rule = Rule(relation, 0.0)
    assert changing(rule, found, rule.verdict(found)) == words
