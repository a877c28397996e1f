"""Seals: for every file that a stage makes, its checksum, its place among the results, its stage and the stage's inputs.

A seal is the hidden file ``.NAME.seal`` beside the file, and is checked when the file is read. An error names the file if a bit
has flipped, if another layer's, split's or task's file is in its place, or if one of the stage's inputs has changed since.
Files without a seal, such as a user's text or a stored run, are not checked.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

#: Folder with a folder per profile.
RESULTS = "results"


class FormatError(ValueError):
    """Error for a file that is truncated, damaged, or of another kind than expected."""


@dataclass(frozen=True)
class Making:
    """A running stage, and the checksums of the sealed files that it has read, by their places."""

    stage: str
    made_from: dict[str, str] = field(default_factory=dict)


_MAKING: ContextVar[Making | None] = ContextVar("making", default=None)
#: State of files whose checksum was right, since a process reads some files many times.
_CHECKED: dict[Path, tuple[int, int, str]] = {}


@contextmanager
def making(stage: str) -> Iterator[None]:
    """Let :func:`seal` attribute files to a stage inside a block, with the files that the stage has read as its inputs."""
    token = _MAKING.set(Making(stage))
    try:
        yield
    finally:
        _MAKING.reset(token)


def seal_of(path: Path) -> Path:
    """Return the path of a file's seal."""
    return path.with_name(f".{path.name}.seal")


def unseal(path: Path) -> None:
    """Remove the seal of a file that is about to be replaced."""
    seal_of(path).unlink(missing_ok=True)


def seal(path: Path) -> None:
    """Seal a complete file if a stage is running, and do nothing otherwise."""
    stage = _MAKING.get()
    if stage is not None:
        record = {"sha256": checksum(path), "place": place(path), "stage": stage.stage, "made_from": stage.made_from}
        seal_of(path).write_text(json.dumps(record | {"seal": _record_hash(record)}), encoding="utf-8")


def verified(path: Path) -> Path:
    """Check a file's seal if it has one, and return its path; a running stage has then read the file.

    Raises
    ------
    FormatError
        If the file does not match its seal.
    """
    record, stage = sealed(path), _MAKING.get()
    # A file of the running stage itself is a checkpoint, which will change before the stage ends.
    if record is not None and stage is not None and record["stage"] != stage.stage:
        stage.made_from[record["place"]] = record["sha256"]
    return path


def verified_folder(folder: Path) -> Path:
    """Check the seals of all files in a folder, without noting the files as read, and return the folder.

    Raises
    ------
    FormatError
        If a file does not match its seal.
    """
    for path in sorted(Path(folder).rglob(".*.seal")):
        sealed(path.with_name(path.name.removeprefix(".").removesuffix(".seal")))
    return folder


def sealed(path: Path) -> dict | None:
    """Check a file's seal and return its ``sha256``, ``place``, ``stage`` and ``made_from``, or None without a seal.

    Raises
    ------
    FormatError
        If the file does not match its seal.
    """
    if not seal_of(path).exists() or not path.exists():
        return None
    record = _read(path)
    status = path.stat()
    state = (status.st_mtime_ns, status.st_size, record["sha256"])
    if _CHECKED.get(path.absolute()) != state:
        if checksum(path) != record["sha256"]:
            raise FormatError(
                f"{path}: has changed since stage {record['stage']} made it; delete it and run the stage again"
            )
        _CHECKED[path.absolute()] = state
    if not _same_place(record["place"], place(path)):
        raise FormatError(f"{path}: was created as {record['place']}; result files must not be moved")
    _check_origins(path, record["made_from"])
    return record


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def place(path: Path) -> str:
    """Return a file's path below its profile's results, or its name if it is outside of any results."""
    root = _root(path)
    return path.name if root is None else path.absolute().relative_to(root).as_posix()


def _root(path: Path) -> Path | None:
    """Return the folder of the profile's results that a file is in, or None."""
    folders = path.absolute().parents
    return next((folder for folder in folders if folder.parent.name == RESULTS), None)


def _same_place(first: str, second: str) -> bool:
    """Return whether two places agree in all their common last parts; a file outside of results has only its name."""
    shared = min(first.count("/"), second.count("/")) + 1
    return first.split("/")[-shared:] == second.split("/")[-shared:]


def _check_origins(path: Path, made_from: dict[str, str]) -> None:
    """Raise ``FormatError`` if an input of a file has been made again since, with another content."""
    root = _root(path)
    for origin, expected in made_from.items():
        if root is not None and seal_of(root / origin).exists() and _read(root / origin)["sha256"] != expected:
            raise FormatError(f"{path}: was made from an earlier version of {origin}; run its stage again")


def _read(path: Path) -> dict:
    try:
        record = json.loads(seal_of(path).read_text(encoding="utf-8"))
        expected = record.pop("seal")
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path}: its seal is damaged ({error}); delete both and run the stage again") from None
    if _record_hash(record) != expected:
        raise FormatError(f"{path}: its seal has changed; delete both and run the stage again")
    return record


def _record_hash(record: dict) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]
