"""The tagger for text without gold tags: learns what its gold tags show, the same way every time."""

import random

import numpy as np
import pytest
import spacy
import torch

from replication.corpora import tagging
from replication.corpora.documents import Document, Sentence
from replication.corpora.tagging import load_tagger, tag_documents, with_tags
from replication.files.packages import taggers

NOUNS, VERBS = ["dog", "owl", "fox", "poet", "queen"], ["sees", "hears", "greets", "finds"]


def tagged(subject, verb, thing):
    return Sentence(["the", subject, verb, "a", thing, "."], ["DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT"])


MODELS = taggers("en")
#: Every noun and verb is learned from, but no sentence is that the test tags.
GOLD = [Document([tagged(s, v, t) for v in VERBS for t in NOUNS if s != t]) for s in NOUNS]
UNSEEN = [Document([tagged(s, v, s) for v in VERBS]) for s in NOUNS]


@pytest.fixture(autouse=True)
def without_model(monkeypatch):
    """As on a machine without spaCy's model."""
    monkeypatch.setattr(tagging, "installed_taggers", lambda language: [])


@pytest.fixture(scope="module")
def tagger():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tagging, "installed_taggers", lambda language: [])
        return load_tagger(GOLD)


def bare(documents):
    return [Document([Sentence(s.words) for s in document.sentences]) for document in documents]


def weights(tagger):
    return tagger.nlp.get_pipe("tagger").model.to_bytes()


def test_sentences_it_has_not_seen_get_their_tags(tagger):
    assert list(tag_documents(bare(UNSEEN), tagger)) == UNSEEN


def test_words_and_chains_stay_and_old_tags_go(tagger):
    sentence = Sentence(["the", "dog", "sees", "a", "fox", "."], ["X"] * 6, [-1, 0, -1, -1, 1, -1])
    (document,) = tag_documents([Document([sentence])], tagger)
    (result,) = document.sentences
    assert (result.words, result.chains) == (sentence.words, sentence.chains)
    assert result.tags == ["DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT"]


def test_documents_without_sentences_stay_so(tagger):
    assert list(tag_documents([Document([])], tagger)) == [Document([])]


def test_documents_are_tagged_one_after_another(tagger):
    endless = iter(lambda: UNSEEN[0], None)
    assert next(tag_documents(endless, tagger)) == UNSEEN[0]


def test_it_says_what_it_learned_from(tagger):
    words = sum(len(sentence.words) for document in GOLD for sentence in document.sentences)
    assert tagger.source == f"spaCy tagger trained on {words} gold-tagged words"


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tagger):
    np.random.rand(7)  # noqa: NPY002 - whatever the caller has drawn before
    assert weights(load_tagger(GOLD)) == weights(tagger)
    assert weights(load_tagger(GOLD, seed=1)) != weights(tagger)


def test_the_callers_random_numbers_are_left_alone():
    def drawn():
        return np.random.get_state()[1].tolist(), random.getstate(), torch.get_rng_state().tolist()  # noqa: NPY002

    before = drawn()
    load_tagger(GOLD[:1])
    assert drawn() == before


@pytest.mark.parametrize("gold", [None, [], bare(GOLD)])
def test_without_model_and_gold_tags_it_says_what_is_missing(gold):
    with pytest.raises(ValueError, match=f"must have tagged sentences.*download {MODELS[0]}"):
        load_tagger(gold)


@pytest.mark.parametrize(("installed", "taken"), [(MODELS, MODELS[0]), (MODELS[1:], MODELS[1])])
def test_where_the_model_or_its_copy_is_installed_it_is_taken(monkeypatch, installed, taken):
    """A stand-in for the model, which gives its universal tags as the model does, by an attribute ruler."""
    model = spacy.blank("en")
    model.meta["version"] = "3.8.0"
    model.add_pipe("attribute_ruler").add([[{"ORTH": "dog"}]], {"POS": "NOUN"})
    monkeypatch.setattr(tagging, "installed_taggers", lambda language: list(installed))
    monkeypatch.setattr(spacy, "load", lambda name, exclude: {taken: model}[name])
    tagger = load_tagger(GOLD)
    assert tagger.source == f"{taken} 3.8.0"
    assert tagger([Sentence(["dog"])]) == [Sentence(["dog"], ["NOUN"])]


def test_the_copy_in_the_lock_tags_english(monkeypatch):
    monkeypatch.undo()
    tagger = load_tagger()
    assert tagger([Sentence("And God said , let there be light".split())])[0].tags[:4] == [
        "CCONJ",
        "PROPN",
        "VERB",
        "PUNCT",
    ]


def test_gold_tags_stay_and_are_called_so():
    documents, source = with_tags(iter(GOLD))
    assert list(documents) == GOLD
    assert source == "gold"


def test_text_without_tags_is_tagged_and_says_by_whom(monkeypatch):
    monkeypatch.setattr(tagging, "EMBEDDED_WORDS", 600)
    documents, source = with_tags(iter(bare(UNSEEN)))
    found = list(documents)
    assert [[s.words for s in d.sentences] for d in found] == [[s.words for s in d.sentences] for d in UNSEEN]
    assert all(len(s.tags) == len(s.words) for d in found for s in d.sentences)
    assert source.startswith("spaCy tagger trained on ")


def test_the_language_decides_the_tagger_and_the_log_says_so(monkeypatch, capsys):
    model = spacy.blank("de")
    model.meta["version"] = "3.8.0"
    monkeypatch.setattr(tagging, "installed_taggers", lambda language: taggers(language))
    monkeypatch.setattr(spacy, "load", lambda name, exclude: {"de_core_news_sm": model}[name])
    _, source = with_tags(iter(bare(UNSEEN)), "de")
    assert source == "de_core_news_sm 3.8.0"
    assert (
        "note: the text has no parts of speech, and was tagged as language 'de' by de_core_news_sm"
        in capsys.readouterr().err
    )


def test_another_language_is_not_tagged_as_english():
    with pytest.raises(ValueError, match="download fi_core_news_sm"):
        with_tags(iter(bare(UNSEEN)), "fi")
