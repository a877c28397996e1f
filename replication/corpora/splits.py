"""Dealing documents into splits that share no sentence."""

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
    """Splits of at least the given sizes, in whole documents, no sentence of one being in another.

    All splits are dealt from one stream. The smallest one takes its documents as they come; each larger one then skips
    documents that have a sentence in common with a split before it. So it is the training documents that are chosen,
    not those that the model is evaluated on, whose language remains that of the grammar.

    ``texts`` gives the sentences of a document, ``measure`` their size in the ``unit`` of ``sizes``.

    Raises
    ------
    ValueError
        If a size is not positive.
    """
    for split, count in sizes.items():
        if count <= 0:
            raise ValueError(f"{unit}: {split} must have a positive number of {unit}, not {count}")
    dealt: dict[str, list[T]] = {split: [] for split in sizes}
    seen: set[tuple[str, ...]] = set()
    for split in sorted(sizes, key=lambda name: sizes[name]):
        written, its_sentences = 0, set()
        while written < sizes[split]:
            document = next(stream)
            sentences = texts(document)
            if seen.isdisjoint(sentences):
                dealt[split].append(document)
                its_sentences.update(sentences)
                written += measure(sentences)
        seen |= its_sentences
    return dealt
