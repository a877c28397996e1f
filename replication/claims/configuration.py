"""What a run's configuration says about its claims: budgets, and whether its text is real."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import yaml

from replication.config.budgets import Budgets
from replication.files.reading import noted
from replication.results.budgets import Budget, budgets_of


def configuration(folder: Path) -> dict:
    """Return the configuration of the run that a task's folder belongs to.

    Raises
    ------
    FileNotFoundError
        If no folder above contains ``config.yaml``.
    """
    for above in folder.parents:
        if (above / "config.yaml").exists():
            return _parsed(noted(above / "config.yaml").read_text(encoding="utf-8"))
    raise FileNotFoundError(f"{folder}: must be below a folder with config.yaml")


@lru_cache(maxsize=4)
def _parsed(text: str) -> dict:
    """Return the configuration, which is parsed once for all claims; do not change it."""
    return yaml.safe_load(text)


def budgets_in(folder: Path, gold: float) -> list[Budget]:
    """Return the budgets of the run that a task's folder belongs to, for a gold graph with a share of the pairs."""
    try:
        settings = configuration(folder).get("budgets", {})
    except FileNotFoundError:
        settings = {}
    return budgets_of(gold, Budgets.model_validate(settings))


#: The source whose pictures and captions this repository generates, which are no evidence about the papers' claims.
GENERATED = "scenes"


def data(task: str, folder: Path) -> str:
    """Return ``generated`` if this repository generates any corpus of a task, else ``real``.

    Tasks without data or without a configuration give an empty string.
    """
    try:
        section = configuration(folder)
        for key in task.split("/"):
            section = section[key]
    except (FileNotFoundError, KeyError):
        return ""
    sources = set(_sources(section))
    return "" if not sources else "generated" if GENERATED in sources else "real"


def _sources(section: object) -> Iterator[str]:
    """Yield every corpus' source below a section of the configuration."""
    if isinstance(section, dict):
        if isinstance(section.get("source"), str):
            yield section["source"]
        for value in section.values():
            yield from _sources(value)
