"""Word alignment: symmetric, almost complete for content words, and without a trace in the English text."""

import hashlib
from itertools import islice, permutations

import pytest
from scenes import SCENES

from replication.corpora.alignment import align, from_pharaoh
from replication.corpora.documents import Sentence
from replication.corpora.grammar import story
from replication.corpora.grammar.concepts import number_nodes
from replication.corpora.grammar.corpus import write_corpus, write_documents
from replication.corpora.grammar.english import sentences as english
from replication.corpora.grammar.french import sentences as french
from replication.corpora.grammar.german import sentences as german
from replication.corpora.sources import read_alignments, read_parallel_splits
from replication.dice import Dice

WRITERS = {"en": english.sentence, "de": german.sentence, "fr": french.sentence}
CONTENT = {"NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM"}


def versions(utterance) -> dict[str, Sentence]:
    numbers = number_nodes(utterance)
    return {language: write(utterance, numbers) for language, write in WRITERS.items()}


@pytest.fixture(scope="module")
def translated() -> list[dict[str, Sentence]]:
    dice = Dice(4)
    return [versions(utterance) for _ in range(120) for utterance in story.tell(dice)]


def linked(source: Sentence, target: Sentence) -> set[tuple[str, str]]:
    return {(source.words[one], target.words[other]) for one, other in align(source, target)}


def test_links_of_a_sentence():
    said = versions(SCENES["known gift"])
    shared = {("Tom", "Tom"), ("red", "roten"), ("kettle", "Kessel"), ("his", "seinen"), ("showed", "zeigte")}
    assert linked(said["en"], said["de"]) == shared | {("the", "der"), ("baker", "Bäckerin")}
    assert {("showed", "montré"), ("his", "sa"), ("red", "rouge"), ("to", "à")} <= linked(said["en"], said["fr"])
    assert ("showed", "a") not in linked(said["en"], said["fr"])


def test_one_word_may_be_several():
    said = versions(SCENES["separated"])
    assert {("offered", "bot"), ("offered", "an")} <= linked(said["en"], said["de"])
    said = versions(SCENES["negated verb"])
    assert {("not", "n'"), ("not", "pas")} <= linked(said["en"], said["fr"])


def test_positions_come_in_order():
    said = versions(SCENES["relative object"])
    links = align(said["en"], said["fr"])
    assert links == sorted(links)


@pytest.mark.parametrize(("source", "target"), list(permutations(WRITERS, 2)))
def test_alignment_is_symmetric(translated, source, target):
    for said in translated:
        forward = align(said[source], said[target])
        assert {(other, one) for one, other in forward} == set(align(said[target], said[source]))


@pytest.mark.parametrize(("source", "target"), list(permutations(WRITERS, 2)))
def test_content_words_are_aligned(translated, source, target):
    found = total = 0
    for said in translated:
        reached = {one for one, _ in align(said[source], said[target])}
        content = [index for index, tag in enumerate(said[source].tags) if tag in CONTENT]
        total += len(content)
        found += len(reached.intersection(content))
    assert found > 0.98 * total


def test_links_join_words_of_one_chain(translated):
    """A link never joins the mentions of two entities."""
    for said in translated:
        for target in ("de", "fr"):
            for one, other in align(said["en"], said[target]):
                chains = {said["en"].chains[one], said[target].chains[other]} - {-1}
                assert len(chains) <= 1


def test_names_are_aligned_with_themselves(translated):
    for said in translated:
        for one, other in align(said["en"], said["fr"]):
            if said["en"].tags[one] == "PROPN":
                assert said["en"].words[one] == said["fr"].words[other]


def test_a_sentence_without_concepts_cannot_be_aligned():
    said = versions(SCENES["state"])["en"]
    plain = english.sentence(SCENES["state"])
    with pytest.raises(ValueError, match="`source` must have concepts, got none for: Anna lived"):
        align(plain, said)
    with pytest.raises(ValueError, match="`target` must have concepts"):
        align(said, plain)


def test_concepts_are_as_many_as_words():
    with pytest.raises(ValueError, match="`concepts` must be empty or one per word, got 1 for 2"):
        Sentence(["two", "words"], concepts=[0])


def test_concepts_change_nothing_else():
    for utterance in SCENES.values():
        plain, said = english.sentence(utterance), versions(utterance)["en"]
        assert (plain.words, plain.tags, plain.chains) == (said.words, said.tags, said.chains)
        assert plain.concepts == []
    assert all(not sentence.concepts for one in islice(write_documents(1), 3) for sentence in one.sentences)


def test_the_english_corpus_is_the_text_it_always_was():
    """Models have been trained on it: a change of the grammar must be meant."""
    digest = hashlib.sha256()
    for split, documents in write_corpus({"train": 30_000, "valid": 3_000, "test": 3_000}, seed=0).items():
        for document in documents:
            for sentence in document.sentences:
                digest.update(repr((split, sentence.words, sentence.tags, sentence.chains)).encode())
    assert digest.hexdigest() == "886b57583381676fcf5c007c9530a8caf07674962de96aafc9882a21f749b26d"


def test_the_grammars_alignments_are_those_of_its_sentences():
    source = {"source": "grammar", "sentences": {"train": 60, "test": 20}, "seed": 4}
    lines = read_alignments(source, ["train", "test"], ["fr", "en"], "spaces")["test"]
    text = read_parallel_splits(source, ["train", "test"], ["fr", "en"])["test"]
    assert len(lines) == len(text["fr"])
    for line, first, second in zip(lines, text["fr"], text["en"], strict=True):
        links = from_pharaoh(line)
        assert links
        assert max(a for a, _ in links) < len(first.split())
        assert max(b for _, b in links) < len(second.split())
