"""Seals: beside every file that a stage makes, its checksum, its place among the results, what made it and from what.

A seal is the hidden file ``.NAME.seal``. What is sealed is checked when it is read: a flipped bit, a file of another layer,
split or task in its place, and one made from something that has changed since are refused by name. What has no seal, as a text
of a user's own or a stored run, is read as it is.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

#: Below it, each profile has a folder of its own.
RESULTS = "results"


class FormatError(ValueError):
    """A file is truncated, damaged or was not made by the stage that should have made it."""


@dataclass(frozen=True)
class Making:
    """A stage at work, and the checksums of the sealed files that it has read, by their places."""

    stage: str
    made_from: dict[str, str] = field(default_factory=dict)


_MAKING: ContextVar[Making | None] = ContextVar("making", default=None)
#: Files that were found whole, as they were then: a process reads some of them many times.
_CHECKED: dict[Path, tuple[int, int, str]] = {}


@contextmanager
def making(stage: str) -> Iterator[None]:
    """Inside, files that :func:`seal` is given are those of a stage, and made from what was read."""
    token = _MAKING.set(Making(stage))
    try:
        yield
    finally:
        _MAKING.reset(token)


def seal_of(path: Path) -> Path:
    """Where the seal of a file lies."""
    return path.with_name(f".{path.name}.seal")


def unseal(path: Path) -> None:
    """Remove the seal of a file that is about to be replaced."""
    seal_of(path).unlink(missing_ok=True)


def seal(path: Path) -> None:
    """Seal a file that is whole now, if a stage has made it; others stay as they are."""
    stage = _MAKING.get()
    if stage is not None:
        said = {"sha256": checksum(path), "place": place(path), "stage": stage.stage, "made_from": stage.made_from}
        seal_of(path).write_text(json.dumps(said | {"seal": _of_seal(said)}), encoding="utf-8")


def verified(path: Path) -> Path:
    """The path itself, if what it holds is what was sealed, or has no seal; a stage at work has read it then.

    Raises :class:`FormatError`, which names the file, for anything else.
    """
    said, stage = sealed(path), _MAKING.get()
    # What a stage has left itself, it goes on from: a checkpoint, which has another content by the end.
    if said is not None and stage is not None and said["stage"] != stage.stage:
        stage.made_from[said["place"]] = said["sha256"]
    return path


def verified_folder(folder: Path) -> Path:
    """The folder itself, if every sealed file in it is what was sealed; which of them are read is not known."""
    for found in sorted(Path(folder).rglob(".*.seal")):
        sealed(found.with_name(found.name.removeprefix(".").removesuffix(".seal")))
    return folder


def sealed(path: Path) -> dict | None:
    """What the seal of a file says, if it has one: ``sha256``, ``place``, ``stage``, ``made_from``.

    Raises :class:`FormatError`, which names the file, if anything of that is not true.
    """
    if not seal_of(path).exists() or not path.exists():
        return None
    said = _read(path)
    state = path.stat()
    known = _CHECKED.get(path.absolute())
    now = (state.st_mtime_ns, state.st_size, said["sha256"])
    if known != now:
        if checksum(path) != said["sha256"]:
            raise FormatError(f"{path}: has changed since stage {said['stage']} made it; delete it and make it again")
        _CHECKED[path.absolute()] = now
    if not _same_place(said["place"], place(path)):
        raise FormatError(f"{path}: was made as {said['place']}, and has been moved here")
    _check_origins(path, said["made_from"])
    return said


def checksum(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def place(path: Path) -> str:
    """Where a file lies below the folder of its profile's results; outside of any, its name."""
    root = _root(path)
    return path.name if root is None else path.absolute().relative_to(root).as_posix()


def _root(path: Path) -> Path | None:
    """The folder of a profile's results that a file is in."""
    folders = path.absolute().parents
    return next((folder for folder in folders if folder.parent.name == RESULTS), None)


def _same_place(one: str, other: str) -> bool:
    """Of a file outside of results only its name is known, which has to be the same."""
    shared = min(one.count("/"), other.count("/")) + 1
    return one.split("/")[-shared:] == other.split("/")[-shared:]


def _check_origins(path: Path, made_from: dict[str, str]) -> None:
    """Raise :class:`FormatError` if one of the files that this was made from has been made anew since, and differs."""
    root = _root(path)
    for origin, expected in made_from.items():
        if root is not None and seal_of(root / origin).exists() and _read(root / origin)["sha256"] != expected:
            raise FormatError(f"{path}: was made from another {origin} than there is now; make it again")


def _read(path: Path) -> dict:
    try:
        said = json.loads(seal_of(path).read_text(encoding="utf-8"))
        expected = said.pop("seal")
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path}: its seal is damaged ({error}); delete both and make it again") from None
    if _of_seal(said) != expected:
        raise FormatError(f"{path}: its seal has changed; delete both and make it again")
    return said


def _of_seal(said: dict) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
