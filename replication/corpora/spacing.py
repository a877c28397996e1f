"""Spaces between tokens: learned from a text, to join tokens of the same language to text again."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

from replication.corpora.subwords import tokenizer
from replication.files.notes import note

#: Moses' tokeniser is used where at least this share of the words comes back when its tokens are joined.
LEAST_KEPT = 0.99
#: Lines that the spaces are learned from.
LINES = 5_000
#: The kind of all words without an apostrophe, and that of any token.
WORD, ANY = "", "<any>"
#: Marks that open and close in turn.
TURNS = ('"', "'", "`", "''", "``")

#: Whether there is no space between two tokens, by their names or else their kinds, as :func:`_keys` writes them.
Spacing = dict[str, bool]


def fit_tokenizer(words: str, language: str, lines: list[str]) -> tuple[Callable[[str], str], Spacing | None]:
    """Return the tokeniser for a text and the spaces between its tokens, None if these are spaces in the text too.

    Moses' tokeniser cuts words of some languages at their marks and loses others. It gives way, with a note, to spaces if less
    than :data:`LEAST_KEPT` of a text's words come back from its tokens.

    Parameters
    ----------
    words : str
        ``"moses"`` or ``"spaces"``, as in :func:`~replication.corpora.subwords.tokenizer`.
    language : str
        Language code.
    lines : list of str
        Training text.
    """
    if words == "spaces":
        return tokenizer(words, language), None
    tokenize = tokenizer(words, language)
    sample = lines[:: -(-len(lines) // LINES)]
    tokens = [tokenize(line) for line in sample]
    # Spaces that were learned from other lines than those that they are tested on.
    halves = [learn_spacing(sample[start::2], tokens[start::2]) for start in (0, 1)]
    joined = [join_tokens(line, halves[1 - number % 2]) for number, line in enumerate(tokens)]
    kept = sum(
        (Counter(line.split()) & Counter(back.split())).total() for line, back in zip(sample, joined, strict=True)
    )
    share = kept / sum(len(line.split()) for line in sample)
    if share >= LEAST_KEPT:
        return tokenize, learn_spacing(sample, tokens)
    note(
        f"Moses' tokeniser keeps {share:.0%} of the words in {language!r}; the text is cut at its spaces in place (key `words`)"
    )
    return tokenizer("spaces", language), None


def learn_spacing(lines: list[str], tokens: list[str]) -> Spacing:
    """Return which tokens of a text have no space between them.

    Each pair of different tokens counts once for the pair of its kinds: a few contractions are more frequent than all other
    words after an apostrophe.

    Parameters
    ----------
    lines : list of str
        The text.
    tokens : list of str
        The tokens of each line, separated by spaces. Lines whose characters differ from those of their tokens are left out.

    Examples
    --------
    >>> spacing = learn_spacing(["“Go,” he said."], ["“ Go , ” he said ."])
    >>> join_tokens("“ Stay , ” she said .", spacing)
    '“Stay,” she said.'
    """
    glued, seen = Counter(), Counter()
    for line, line_tokens in zip(lines, tokens, strict=True):
        for (left, right), apart in zip(_neighbours(line_tokens), _spaces(line, line_tokens.split()), strict=False):
            seen[left, right] += 1
            glued[left, right] += not apart
    votes: dict[str, Counter] = {}
    for pair in seen:
        for key in _keys(*pair)[1:]:
            votes.setdefault(key, Counter())[2 * glued[pair] > seen[pair]] += 1
    spacing = {key: vote[True] > vote[False] for key, vote in votes.items()}
    own = {pair: 2 * glued[pair] > seen[pair] for pair in seen}
    return spacing | {_keys(*pair)[0]: value for pair, value in own.items() if value != _is_glued(pair, spacing)}


def join_tokens(line: str, spacing: Spacing | None) -> str:
    """Return a line of tokens as text; without ``spacing``, the line."""
    if spacing is None:
        return line
    tokens = line.split()
    joints = ["" if _is_glued(pair, spacing) else " " for pair in _neighbours(line)]
    return "".join(token + joint for token, joint in zip(tokens, [*joints, ""], strict=True))


def _neighbours(line: str) -> Iterator[tuple[str, str]]:
    """Yield each token with the next one; marks that open and close in turn are numbered 0 and 1."""
    counts: Counter = Counter()
    named = []
    for token in line.lower().split():
        named.append(f"{token}{counts[token] % 2}" if token in TURNS else token)
        counts[token] += 1
    yield from pairwise(named)


def _spaces(line: str, tokens: list[str]) -> list[bool]:
    """Return whether the line has a space after each token but the last; nothing if it has other characters."""
    if "".join(line.split()) != "".join(tokens):
        return []
    ends = set()
    position = 0
    for word in line.split():
        position += len(word)
        ends.add(position)
    position, apart = 0, []
    for token in tokens[:-1]:
        position += len(token)
        apart.append(position in ends)
    return apart


def _keys(left: str, right: str) -> tuple[str, str, str, str]:
    """Return the names of a pair, of the pair of its kinds, and of either kind with any neighbour."""
    one, other = _kind(left), _kind(right)
    return f"{left} {right}", f"{one} {other}", f"{one} {ANY}", f"{ANY} {other}"


def _kind(token: str) -> str:
    is_word = token[0].isalnum() and token[-1].isalnum() and token[:-1] not in TURNS
    return WORD if is_word else token


def _is_glued(pair: tuple[str, str], spacing: Spacing) -> bool:
    exact, kinds, *either = _keys(*pair)
    return spacing.get(exact, spacing.get(kinds, any(spacing.get(key, False) for key in either)))
