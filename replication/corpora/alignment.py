"""Gold word alignment: which words of two languages express the same thing."""

from collections import defaultdict

from replication.corpora.documents import Sentence


def align(source: Sentence, target: Sentence) -> list[tuple[int, int]]:
    """Pairs (position in source, position in target) of the words that share a concept, in ascending order.

    A concept that takes several words in a language ("steht ... auf") links each of them.

    Raises
    ------
    ValueError
        If a sentence has no concepts.
    """
    for name, sentence in (("source", source), ("target", target)):
        if sentence.words and not sentence.concepts:
            raise ValueError(f"{name}: has no concepts to align: {' '.join(sentence.words)}")
    positions = defaultdict(list)
    for position, concept in enumerate(target.concepts):
        positions[concept].append(position)
    return [
        (position, counterpart)
        for position, concept in enumerate(source.concepts)
        if concept >= 0
        for counterpart in positions.get(concept, ())
    ]


def to_pharaoh(links: list[tuple[int, int]]) -> str:
    """``[(0, 0), (1, 2)]`` -> ``"0-0 1-2"``, the usual line of an alignment file."""
    return " ".join(f"{source}-{target}" for source, target in links)


def from_pharaoh(line: str) -> list[tuple[int, int]]:
    """The inverse of :func:`to_pharaoh`.

    Raises
    ------
    ValueError
        If the line is something else.
    """
    try:
        return [(int(source), int(target)) for source, target in (link.split("-") for link in line.split())]
    except ValueError as error:
        raise ValueError(f"not an alignment like 0-0 1-2: {line!r}") from error
