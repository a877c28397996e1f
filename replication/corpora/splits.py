"""Splits of generated documents that share no sentence."""

from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


def deal(
    stream: Iterator[T],
    sizes: dict[str, int],
    unit: str,
    texts: Callable[[T], list[tuple[str, ...]]],
    measure: Callable[[list[tuple[str, ...]]], int],
) -> dict[str, list[T]]:
    """Deal documents of a stream into splits of at least the given sizes, without a sentence in two splits.

    The smallest split takes its documents as they come. Each larger split skips documents that share a sentence with an
    earlier split. So only the training documents are selected, and evaluation text keeps the distribution of the grammar.

    Parameters
    ----------
    stream : iterator
        Documents.
    sizes : dict of int
        Size of each split in ``unit``.
    unit : str
        Name of the unit, for errors.
    texts : callable
        From a document to its sentences.
    measure : callable
        From sentences to their size in ``unit``.

    Raises
    ------
    ValueError
        If a size is not positive.
    """
    for split, count in sizes.items():
        if count <= 0:
            raise ValueError(f"`{unit}` must be positive, got {count} for {split}")
    dealt: dict[str, list[T]] = {split: [] for split in sizes}
    earlier_sentences: set[tuple[str, ...]] = set()
    for split in sorted(sizes, key=lambda name: sizes[name]):
        size, split_sentences = 0, set()
        while size < sizes[split]:
            document = next(stream)
            sentences = texts(document)
            if earlier_sentences.isdisjoint(sentences):
                dealt[split].append(document)
                split_sentences.update(sentences)
                size += measure(sentences)
        earlier_sentences |= split_sentences
    return dealt
