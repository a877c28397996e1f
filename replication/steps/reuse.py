"""Which steps of a configuration do what those of another one did."""

from collections.abc import Iterable
from pathlib import Path

from replication.steps.step import Step


def unchanged(old: Iterable[Step], new: Iterable[Step]) -> list[Step]:
    """Return the steps of a configuration that see the settings of another one's, and read what such steps make.

    Parameters
    ----------
    old, new : iterable of Step
        Steps of the other configuration and of this one, each in any order.
    """
    before = {tuple(step.words): (dict(step.sees), list(map(str, step.text()))) for step in old}
    same = [step for step in new if before.get(tuple(step.words)) == (dict(step.sees), list(map(str, step.text())))]
    while True:
        made = {path for step in same for path in step.outputs}
        kept = [step for step in same if all(_is_made(path, made) for path in step.reads)]
        if len(kept) == len(same):
            return same
        same = kept


def _is_made(path: Path, made: set[Path]) -> bool:
    """Return whether a file, or the folder that it lies in, is made by a step."""
    return path in made or any(folder in made for folder in path.parents)
