"""Gold word alignments: from word keys, and as lines of an alignment file."""

from collections import Counter
from itertools import product

#: The key of a word that has none.
NO_KEY = "_"


def linked_by_keys(source: list[str], target: list[str]) -> list[tuple[int, int]]:
    """Return the links (position in source, position in target) of words whose key occurs once on each side, in order.

    Keys are for example the Strong's numbers of a Bible's words.

    Parameters
    ----------
    source, target : list of str
        One key per word, :data:`NO_KEY` for a word without one.

    Examples
    --------
    >>> linked_by_keys(["_", "H7225", "H430", "H1"], ["H430", "H7225", "H7225", "_"])
    [(2, 0)]
    """
    counts = Counter(target)
    once = {key: position for position, key in enumerate(target) if counts[key] == 1 and key != NO_KEY}
    counts = Counter(source)
    return [(position, once[key]) for position, key in enumerate(source) if counts[key] == 1 and key in once]


def link_tokens(
    links: list[tuple[int, int]], lines: tuple[str, str], tokens: tuple[list[str], list[str]]
) -> list[tuple[int, int]]:
    """Turn links between words into links between the tokens that a tokeniser made of them.

    Only tokens with a letter or a digit are linked.

    Parameters
    ----------
    links : list of pairs
        Positions in source and target of words, as separated by whitespace.
    lines : pair of str
        The sentence in both languages.
    tokens : pair of lists of str
        The tokens of each line.

    Raises
    ------
    ValueError
        If tokens do not have the characters of their line.

    Examples
    --------
    >>> link_tokens([(0, 1)], ("l'arche,", "the ark"), (["l'", "arche", ","], ["the", "ark"]))
    [(0, 1), (1, 1)]
    """
    source, target = map(_tokens_by_word, lines, tokens)
    return sorted(pair for left, right in links for pair in product(source[left], target[right]))


def _tokens_by_word(line: str, tokens: list[str]) -> list[list[int]]:
    """Return the positions of the tokens that begin in each word, without punctuation."""
    words = line.split()
    if "".join(words) != "".join(tokens).replace(" ", ""):
        raise ValueError(f"`tokens` must have the characters of the line {line!r}, got {' '.join(tokens)!r}")
    word_of_character = [number for number, word in enumerate(words) for _ in word]
    tokens_by_word: list[list[int]] = [[] for _ in words]
    start = 0
    for number, token in enumerate(tokens):
        if any(map(str.isalnum, token)):
            tokens_by_word[word_of_character[start]].append(number)
        start += len(token)
    return tokens_by_word


def to_pharaoh(links: list[tuple[int, int]]) -> str:
    """Return links as a line of an alignment file.

    Examples
    --------
    >>> to_pharaoh([(0, 0), (1, 2)])
    '0-0 1-2'
    """
    return " ".join(f"{source}-{target}" for source, target in links)


def from_pharaoh(line: str) -> list[tuple[int, int]]:
    """Parse a line of :func:`to_pharaoh`.

    Raises
    ------
    ValueError
        If the line is not an alignment.
    """
    try:
        return [(int(source), int(target)) for source, target in (link.split("-") for link in line.split())]
    except ValueError as error:
        raise ValueError(f"`line` must be an alignment such as 0-0 1-2, got {line!r}") from error
