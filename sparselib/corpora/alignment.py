"""Gold word alignment: which words of two languages express the same thing."""

from collections import defaultdict

from sparselib.corpora.documents import Sentence


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
