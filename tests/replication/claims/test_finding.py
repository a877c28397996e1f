"""From effects to a verdict."""

import pytest

from replication.claims.finding import Effect
from replication.claims.rule import Rule


def effect(value, low=None, high=None):
    return Effect("it", value, None if low is None else (low, high), "3 seeds")


@pytest.mark.parametrize(
    ("relation", "one", "verdict"),
    [
        (">=", effect(1.0), "holds"),
        (">=", effect(0.0), "holds"),
        (">=", effect(-0.1), "fails"),
        ("<=", effect(-0.1), "holds"),
        ("<=", effect(0.1), "fails"),
        (">=", effect(1.0, 0.5, 1.5), "holds"),
        (">=", effect(1.0, 0.0, 2.0), "holds"),
        (">=", effect(1.0, -0.1, 2.1), "undecided"),
        (">=", effect(-1.0, -2.1, 0.1), "undecided"),
        (">=", effect(-1.0, -2.0, -0.1), "fails"),
        ("<=", effect(1.0, 0.5, 1.5), "fails"),
        ("<=", effect(1.0, -0.1, 2.1), "undecided"),
    ],
)
def test_the_interval_decides_if_it_is_on_one_side_of_the_threshold(relation, one, verdict):
    assert Rule(relation, 0.0).verdict(one) == verdict


def test_of_several_effects_one_that_fails_decides_then_one_that_is_undecided():
    holds, nearly, unsure, fails, worse = (
        effect(9.0), effect(0.1), effect(-0.2, -1.0, 1.0), effect(-0.1), effect(-0.3),
    )  # fmt: skip
    rule = Rule(">=", 0.0)
    assert rule.of_all([holds, nearly]) == ("holds", nearly)
    assert rule.of_all([holds, unsure, nearly]) == ("undecided", unsure)
    assert rule.of_all([holds, fails, unsure, worse]) == ("fails", worse)


def test_the_effect_that_decides_a_ceiling_is_the_largest():
    assert Rule("<=", 1.0).of_all([effect(0.2), effect(0.9)])[1].value == 0.9


def test_another_relation_is_an_error():
    with pytest.raises(ValueError, match="relation: >= or <=, got '>'"):
        Rule(">", 0.0)
