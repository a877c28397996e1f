"""Pairs of a translator's data that are too long to train on, which fairseq leaves out."""

from collections.abc import Mapping
from pathlib import Path

#: fairseq's limit of its own, the positions of a transformer.
POSITIONS = 1024


def lengths(data: Path, split: str, pair: tuple[str, str]) -> list[int]:
    """Return the length of each pair of a split: the pieces of its longer side, and the end mark.

    Parameters
    ----------
    data : Path
        Folder of :func:`replication.translation.data.binarize`.
    split : str
        Split of the data.
    pair : pair of str
        Language codes.
    """
    sides = [(data / "pieces" / f"{split}.{language}").read_text(encoding="utf-8").splitlines() for language in pair]
    return [1 + max(len(line.split()) for line in lines) for lines in zip(*sides, strict=True)]


def left_out(data: Path, pair: tuple[str, str], training: Mapping[str, object]) -> dict[str, int]:
    """Return the number of training and of validation pairs that are too long.

    Raises
    ------
    ValueError
        If no pair of a split is left.
    """
    limits = {"train": min(training["max_tokens"], POSITIONS), "valid": POSITIONS}
    counts = {}
    for split, limit in limits.items():
        found = lengths(data, split, pair)
        counts[split] = sum(length > limit for length in found)
        if counts[split] == len(found):
            key = "max_tokens" if limit < POSITIONS else "sentences"
            raise ValueError(
                f"`{key}` must fit a {split} pair of {data}: the limit is {limit} tokens, "
                f"and the shortest pair has {min(found)}"
            )
    return counts
