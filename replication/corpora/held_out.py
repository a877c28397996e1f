"""Refusal of held-out text that a model is trained on."""

from collections.abc import Hashable, Iterable, Iterator

from replication.corpora.documents import Document
from replication.files.notes import note

#: Share of a split's units in the training text from which a note says so. Verses and formulas repeat.
NOTED = 0.1


def check_held_out(split: str, units: Iterable[Hashable], training: set[int], source: object) -> None:
    """Check that a split is not training text; a note gives the share of it that is, if that is large.

    Parameters
    ----------
    split : str
        Name of the split.
    units : iterable
        Its sentences, or aligned sentences.
    training : set of int
        Hashes of the training split's units.
    source : object
        Where the text is from, for the error.

    Raises
    ------
    ValueError
        If the training text contains all of the split.
    """
    known = [hash(unit) in training for unit in units]
    if known and all(known):
        raise ValueError(
            f"{source}: the {split} split must be other text than the training split, which contains all of it"
        )
    if known and sum(known) >= NOTED * len(known):
        note(f"{source}: {sum(known) / len(known):.0%} of the {split} split's sentences are in the training split, too")


def hashed(units: Iterable[Hashable]) -> set[int]:
    """Return the hashes of a training split's units."""
    return set(map(hash, units))


def sentences_of(documents: Iterable[Document]) -> Iterator[tuple[str, ...]]:
    """Yield the words of each sentence."""
    return (tuple(sentence.words) for document in documents for sentence in document.sentences)


def remembering(documents: Iterable[Document], sentences: set[int]) -> Iterator[Document]:
    """Yield the documents, and add the hashes of their sentences to a set."""
    for document in documents:
        sentences |= hashed(sentences_of([document]))
        yield document
