"""The embedded corpus: English documents written by a seeded feature grammar, in any amount, the same everywhere.

A document has a small cast whose facts (profession, character, age, home, treasure, likings) hold from its first
sentence to its last and are repeated all the time, so that many a word can be told only from an earlier mention of the
same entity. ``story`` decides what is said, as abstract clauses; ``english`` puts it into words.
"""

from collections.abc import Iterator

from replication.corpora.documents import Document
from replication.corpora.grammar import story
from replication.corpora.grammar.english import sentences as english
from replication.corpora.splits import deal
from replication.dice import Dice


def write_documents(seed: int) -> Iterator[Document]:
    """An endless stream of documents, tagged and with coreference chains, some of which have a single mention."""
    dice = Dice(seed)
    while True:
        yield Document([english.sentence(utterance) for utterance in story.tell(dice)])


def write_corpus(words: dict[str, int], seed: int) -> dict[str, list[Document]]:
    """Splits of at least so many words each, in whole documents, no sentence of one being in another."""
    return deal(
        write_documents(seed),
        words,
        unit="words",
        texts=lambda document: [tuple(sentence.words) for sentence in document.sentences],
        measure=lambda sentences: sum(map(len, sentences)),
    )
