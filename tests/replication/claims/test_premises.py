"""Premises: read, measured and said in words."""

import pytest

from replication.claims import premises
from replication.claims.premises import Condition, judge, parse


def test_conditions_are_joined_by_an_ampersand():
    assert parse("") == []
    assert parse("gold_sparsity >= 0.75 & bleu>=30") == [
        Condition("gold_sparsity", ">=", 0.75),
        Condition("bleu", ">=", 30.0),
    ]


@pytest.mark.parametrize("text", ["bleu", "bleu > 3", "bleu >= x", "bleu >= 3 &", "3 <= bleu"])
def test_what_is_no_condition_is_an_error_that_shows_it(text):
    with pytest.raises(ValueError, match=r"premise: .* is not of the form"):
        parse(text)


@pytest.mark.parametrize(
    ("premise", "met", "words"),
    [
        ("bleu >= 30", False, "bleu >= 30 (12 in en-fr)"),
        ("bleu >= 10", True, "bleu >= 10 (12 in en-fr)"),
        ("bleu <= 50", True, "bleu <= 50 (40 in en-de)"),
        ("bleu >= 10 & layers >= 2", False, "bleu >= 10 (12 in en-fr); layers >= 2 (1)"),
        ("lost >= 0", False, "lost >= 0 (not known)"),
        ("", True, ""),
    ],
)
def test_every_corpus_has_to_meet_a_premise_and_the_worst_is_named(monkeypatch, tmp_path, premise, met, words):
    def missing(folder):
        raise FileNotFoundError

    measures = {"bleu": lambda f: {"en-de": 40.0, "en-fr": 12.0}, "layers": lambda f: {"": 1}, "lost": missing}
    monkeypatch.setitem(premises.MEASURES, "here", measures)
    assert judge(premise, "here", tmp_path) == (met, words)


def test_a_name_that_nothing_measures_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="'blue' is not measured for translation: gold_sparsity"):
        judge("blue >= 3", "translation", tmp_path)
