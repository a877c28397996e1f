"""Premises: read, measured and said in words."""

import pandas as pd
import pytest
from worlds import write_world

from replication.claims import premises
from replication.claims.configuration import data
from replication.claims.premises import Condition, judge, parse


def test_conditions_are_joined_by_an_ampersand():
    assert parse("") == []
    assert parse("gold_sparsity >= 0.75 & bleu>=30") == [
        Condition("gold_sparsity", ">=", 0.75),
        Condition("bleu", ">=", 30.0),
    ]


@pytest.mark.parametrize("text", ["bleu", "bleu > 3", "bleu >= x", "bleu >= 3 &", "3 <= bleu"])
def test_what_is_no_condition_is_an_error_that_shows_it(text):
    with pytest.raises(ValueError, match="`premise` must be like 'name >= number"):
        parse(text)


@pytest.mark.parametrize(
    ("premise", "met", "words"),
    [
        ("bleu >= 30", False, "bleu >= 30 (12 in en-fr, 18 outside)"),
        ("bleu >= 10", True, "bleu >= 10 (12 in en-fr)"),
        ("bleu <= 50", True, "bleu <= 50 (40 in en-de)"),
        ("bleu >= 10 & layers >= 2", False, "bleu >= 10 (12 in en-fr); layers >= 2 (1, 1 outside)"),
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
    with pytest.raises(
        ValueError, match=r"`premise` must name a number measured for translation \(gold_sparsity.*got 'blue'"
    ):
        judge("blue >= 3", "translation", tmp_path)


@pytest.mark.parametrize(
    ("task", "section", "expected"),
    [
        ("masked_lm", {"corpus": {"source": "bible"}}, "real"),
        ("masked_lm", {"corpus": {"source": "folder"}, "unseen": {"other": {"source": "hub"}}}, "real"),
        ("masked_lm", {"corpus": {"source": "folder"}, "unseen": {"other": {"source": "scenes"}}}, "generated"),
        ("forms/sentences", {"corpus": {"fr-en": {"source": "bible"}}}, "real"),
        ("patterns/images", {"corpora": {"digits": {"source": "digits"}}}, "real"),
        ("captioning", {"source": {"source": "scenes"}}, "generated"),
        ("factorised", {}, ""),
    ],
)
def test_data_that_is_written_or_drawn_here_is_told_from_real_data(tmp_path, task, section, expected):
    configuration = section
    for key in reversed(task.split("/")):
        configuration = {key: configuration}
    write_world(tmp_path, {"config.yaml": configuration})
    assert data(task, tmp_path / task) == expected
    (tmp_path / "config.yaml").unlink()
    assert data(task, tmp_path / task) == ""


def speeds(softmax, rivals):
    rows = [("softmax", "torch", softmax)] + [(name, whose, value) for (name, whose), value in rivals.items()]
    table = pd.DataFrame(rows, columns=["contender", "implementation", "decode_repeats"])
    return {"normalizer_speed/speed.csv": table.assign(train_repeats=table["decode_repeats"])}


def test_the_lead_of_softmax_is_over_the_rivals_faster_implementation(tmp_path):
    rivals = {("sparsemax", "sparselib"): "50 25", ("sparsemax", "entmax"): "10 10"}
    write_world(tmp_path, speeds("100 100", rivals))
    found = premises.MEASURES["normalizer_speed"]["softmax_by_sparsemax"](tmp_path / "normalizer_speed")
    assert found == {"": pytest.approx((2 + 4) / 2)}


@pytest.mark.parametrize(("settings", "expected"), [({"initial_span": 0.3}, 0.3), ({}, 0.0)])
def test_the_initial_span_is_the_configurations(tmp_path, settings, expected):
    write_world(tmp_path, {"config.yaml": {"char_lm": {"models": {"adaptive-span": settings}}}})
    assert premises.MEASURES["char_lm"]["initial_span"](tmp_path / "char_lm") == {"": expected}


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        ({}, 1.5),
        ({"attention_normalizer": "softmax"}, 1.0),
        ({"attention_normalizer": "sparsemax"}, 2.0),
        ({"attention_form": "Top-k"}, 1.0),
    ],
)
def test_alpha_is_that_of_the_configured_normaliser(tmp_path, training, expected):
    write_world(tmp_path, {"config.yaml": {"translation": {"training": training}}})
    assert premises.MEASURES["translation"]["alpha"](tmp_path / "translation") == {"": expected}


def test_the_papers_bleu_is_not_compared_with_that_of_a_softmax_model(tmp_path):
    training = {"attention_normalizer": "softmax"}
    write_world(
        tmp_path, {"config.yaml": {"translation": {"architecture": {"decoder_layers": 6}, "training": training}}}
    )
    met, words = judge("decoder_layers >= 6 & alpha >= 1.5", "translation", tmp_path / "translation")
    assert (met, words) == (False, "decoder_layers >= 6 (6); alpha >= 1.5 (1, 0.5 outside)")
