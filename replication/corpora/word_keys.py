"""Gold word alignment of text whose words have keys, as a Bible's have Strong's numbers: by keys that both sides have once."""

from collections import Counter
from itertools import product

#: The key of a word that has none.
NONE = "_"


def linked_by_keys(source: list[str], target: list[str]) -> list[tuple[int, int]]:
    """Pairs (position in source, position in target) of the words whose key each side has once, in ascending order.

    >>> linked_by_keys(["_", "H7225", "H430", "H1"], ["H430", "H7225", "H7225", "_"])
    [(2, 0)]
    """
    counts = Counter(target)
    once = {key: position for position, key in enumerate(target) if counts[key] == 1 and key != NONE}
    counts = Counter(source)
    return [(position, once[key]) for position, key in enumerate(source) if counts[key] == 1 and key in once]


def link_tokens(
    links: list[tuple[int, int]], lines: tuple[str, str], tokens: tuple[list[str], list[str]]
) -> list[tuple[int, int]]:
    """Links of the words of two lines (between spaces), as links of all tokens with a letter or digit that these words became.

    >>> link_tokens([(0, 1)], ("l'arche,", "the ark"), (["l'", "arche", ","], ["the", "ark"]))
    [(0, 1), (1, 1)]

    Raises
    ------
    ValueError
        If tokens are not the characters of their line.
    """
    source, target = (_tokens_of_words(line, of_line) for line, of_line in zip(lines, tokens, strict=True))
    return sorted(link for one, other in links for link in product(source[one], target[other]))


def _tokens_of_words(line: str, tokens: list[str]) -> list[list[int]]:
    """For each word of a line, the tokens that begin in it, punctuation left out."""
    words = line.split()
    if "".join(words) != "".join(tokens).replace(" ", ""):
        raise ValueError(f"not the characters of the line {line!r}: {' '.join(tokens)!r}")
    word_of_character = [number for number, word in enumerate(words) for _ in word]
    found: list[list[int]] = [[] for _ in words]
    start = 0
    for number, token in enumerate(tokens):
        if any(map(str.isalnum, token)):
            found[word_of_character[start]].append(number)
        start += len(token)
    return found
