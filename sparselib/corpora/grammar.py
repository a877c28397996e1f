"""The embedded corpus: English documents written by a seeded feature grammar, in any amount, the same everywhere.

A document has a small cast whose facts (profession, character, age, home, treasure, likings) hold from its first
sentence to its last and are repeated all the time, so that many a word can be told only from an earlier mention of the
same entity. ``story`` decides what is said, as abstract clauses; ``english`` puts it into words.
"""

from collections.abc import Iterator

from sparselib.corpora import english, story
from sparselib.corpora.dice import Dice
from sparselib.corpora.documents import Document


def write_documents(seed: int) -> Iterator[Document]:
    """An endless stream of documents, tagged and with coreference chains, some of which have a single mention."""
    dice = Dice(seed)
    while True:
        yield Document([english.sentence(utterance) for utterance in story.tell(dice)])


def write_corpus(words: dict[str, int], seed: int) -> dict[str, list[Document]]:
    """Splits of at least so many words each, in whole documents, no sentence of one being in another.

    All splits are dealt from one stream. The smallest one takes its documents as they come; each larger one then skips
    documents that have a sentence in common with a split before it. So it is the training documents that are chosen,
    not those that the model is evaluated on, whose language remains that of the grammar.
    """
    for split, count in words.items():
        if count <= 0:
            raise ValueError(f"words: {split} must have a positive number of words, not {count}")
    stream = write_documents(seed)
    corpus: dict[str, list[Document]] = {split: [] for split in words}
    seen: set[tuple[str, ...]] = set()
    for split in sorted(words, key=lambda name: words[name]):
        written, own = 0, set()
        while written < words[split]:
            document = next(stream)
            sentences = {tuple(sentence.words) for sentence in document.sentences}
            if seen.isdisjoint(sentences):
                corpus[split].append(document)
                own |= sentences
                written += sum(len(sentence.words) for sentence in document.sentences)
        seen |= own
    return corpus
