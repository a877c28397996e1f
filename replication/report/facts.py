"""Facts at the top of a report: the texts of a run, its date and its commit."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

#: Names of the tasks of a configuration, and of the sources of their texts.
TASKS = {
    "masked_lm": "masked language model",
    "translation": "translation",
    "char_lm": "characters",
    "patterns": "factorised patterns",
    "forms": "attention forms",
    "captioning": "captioning",
    "normalizer_speed": "speed of normalisers",
    "retrofit": "sparsified encoder",
}
SOURCES = {
    "bible": "Berean Standard Bible",
    "scenes": "drawn scenes (a demonstration)",
    "digits": "handwritten digits",
}


def texts(settings: dict) -> dict[str, list[str]]:
    """Return the tasks of a run by the text or pictures that they use, real ones first."""
    tasks: dict[str, list[str]] = {}
    for task, name in TASKS.items():
        for source in dict.fromkeys(_sources(settings.get(task))):
            tasks.setdefault(source, []).append(name)
    return dict(sorted(tasks.items(), key=lambda item: "demonstration" in item[0]))


def _sources(section: object) -> Iterator[str]:
    """Yield the name of every source in a section of the configuration."""
    if isinstance(section, dict):
        if isinstance(kind := section.get("source"), str):
            yield SOURCES.get(kind) or str(section.get("name") or section.get("path") or kind)
        for part in section.values():
            yield from _sources(part)
    elif isinstance(section, list):
        for part in section:
            yield from _sources(part)


def finished(results: Path) -> str:
    """Return the date on which a run's ledger was written, in UTC."""
    return datetime.fromtimestamp((results / "claims.csv").stat().st_mtime, UTC).strftime("%d %B %Y").lstrip("0")


def commit(root: Path) -> str:
    """Return the checkout's commit, with a note about uncommitted changes, or an empty string outside a checkout."""
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty= with uncommitted changes", "--abbrev=10"]
    # Another user's checkout, as in a container, makes git refuse; the report then has no commit.
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
