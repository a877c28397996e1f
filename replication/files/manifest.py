"""Manifest of a run: its visible file ``made.json`` lists every file that a stage made.

An entry has the file's checksum, the stage, hashes of the stage's options, configuration and code, and the checksums of its
inputs. The workflow adds its plan: all files of the current configuration, with the options that they must be made with.
:mod:`replication.files.verification` compares a folder with its manifest.
"""

import copy
import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath

from replication.files.errors import FormatError
from replication.files.form import check_form
from replication.files.provenance import provenance, source_hash
from replication.files.runs import CONFIGURATION, LOCK, MANIFEST, is_left_out, place_of, root_of

#: Hexadecimal digits of hashes other than a file's own.
DIGITS = 16


@dataclass(frozen=True)
class Making:
    """A running stage, the files that it writes, and the checksums of the listed files that it reads."""

    stage: str
    configuration: str | None
    outputs: set[Path] = field(default_factory=set)
    inputs: dict[Path, str] = field(default_factory=dict)


_MAKING: ContextVar[Making | None] = ContextVar("making", default=None)


@contextmanager
def making(stage: str, configuration: object = None) -> Iterator[None]:
    """List the files that a block writes, if it succeeds.

    Parameters
    ----------
    stage : str
        Command of the stage without its configuration. Files that the same command made before, and does not make now, are no
        longer listed.
    configuration : object
        The stage's configuration as plain JSON; default: the one that the run's folder has.
    """
    current = Making(stage, None if configuration is None else options_hash(configuration))
    token = _MAKING.set(current)
    try:
        yield
    finally:
        _MAKING.reset(token)
    written = [path for path in current.outputs if path.exists() and root_of(path) and not is_left_out(place_of(path))]
    for root in {root_of(path) for path in written}:
        _list(root, current, [path for path in written if root_of(path) == root])


def add_output(path: Path) -> None:
    """Note that the running stage has written a file; without a running stage, do nothing."""
    if (stage := _MAKING.get()) is not None:
        stage.outputs.add(Path(path).absolute())


def add_input(path: Path) -> None:
    """Note that the running stage reads a file; do nothing without a running stage, or if the file is not listed."""
    stage, root = _MAKING.get(), root_of(path)
    if stage is not None and root is not None and (entry := read_manifest(root)["made"].get(place_of(path))):
        stage.inputs[Path(path).absolute()] = entry["sha256"][:DIGITS]


def _list(root: Path, stage: Making, written: list[Path]) -> None:
    with changing(root) as manifest:
        listed, plan = manifest["made"], manifest["plan"]
        for place in [place for place, entry in listed.items() if entry["stage"] == stage.stage]:
            del listed[place]
        inputs = {place_of(path): checksum for path, checksum in stage.inputs.items() if root_of(path) == root}
        entries = {place_of(path): {"sha256": checksum(path)} for path in sorted(written)}
        current = stage.configuration if CONFIGURATION in entries else configuration_of(manifest)
        configuration = stage.configuration or current
        origin = provenance()
        machine = options_hash(origin)
        manifest.setdefault("machines", {})[machine] = origin
        for place, entry in entries.items():
            planned = planned_as(plan, place) if configuration == current else None
            options = planned["options"] if planned else options_hash([stage.stage, configuration])
            made = {"stage": stage.stage, "configuration": configuration, "options": options}
            listed[place] = entry | made | {"code": code_of(planned), "machine": machine, "inputs": inputs}
            manifest.get("dropped", {}).pop(place, None)


def code_for(path: Path) -> str:
    """Return the hash of the code that would make a file now."""
    root = root_of(path)
    return code_of(root and planned_as(read_manifest(root)["plan"], place_of(path)))


def code_of(planned: Mapping[str, str] | None) -> str:
    """Return the hash of the code that makes a file now: the planned code, unless the source has changed since the plan."""
    is_current = planned is not None and planned.get("source") == source_hash()
    return planned["code"] if is_current else source_hash()


def write_plan(root: Path, plan: Mapping[str, dict[str, str]], again: Iterable[str], *, whole: bool) -> None:
    """Write which files a configuration has, when its run starts.

    Parameters
    ----------
    root : Path
        Folder of the run.
    plan : mapping
        ``options`` and ``code`` of each file or folder, by its place.
    again : iterable of str
        Files and folders that the run will make again, which are no longer listed.
    whole : bool
        Whether these are all files of the configuration. Otherwise other files keep their plan.
    """
    plan = {place: options | {"source": source_hash()} for place, options in plan.items()}
    with changing(root) as manifest:
        manifest["plan"] = plan if whole else manifest["plan"] | plan
        manifest["whole"] = whole or manifest.get("whole", False)
        listed, dropped, waiting = manifest["made"], manifest.get("dropped", {}), dict.fromkeys(again, True)
        for place in [place for place in listed if planned_as(waiting, place)]:
            dropped[place] = listed.pop(place)
        # A run that was stopped before it made these again, and that has its earlier settings back, keeps them.
        for place, entry in list(dropped.items()):
            planned = planned_as(manifest["plan"], place)
            is_wanted = planned and planned["options"] == entry["options"] and not planned_as(waiting, place)
            if is_wanted and (root / place).is_file() and checksum(root / place) == entry["sha256"]:
                listed[place] = dropped.pop(place)
        manifest["dropped"] = dropped


def waiting(root: Path) -> list[str]:
    """Return the places of files that lie there until the run makes them again, such as those made from earlier versions."""
    manifest = read_manifest(root)
    made = manifest["made"]
    return [*manifest.get("dropped", {}), *(place for place, entry in made.items() if changed_origins(entry, made))]


def changed_origins(entry: dict, made: Mapping[str, dict]) -> list[str]:
    """Return the inputs of a file that have been made again since."""
    inputs = entry["inputs"].items()
    return [origin for origin, expected in inputs if origin in made and not made[origin]["sha256"].startswith(expected)]


def planned_as(plan: Mapping[str, object], place: str) -> object | None:
    """Return the plan of a file, or of the folder that it is planned with; None if there is neither."""
    parents = [place, *map(str, PurePosixPath(place).parents)]
    return next((plan[name] for name in parents if name in plan), None)


def configuration_of(manifest: Mapping[str, dict]) -> str | None:
    """Return the hash of the configuration that a run's folder has, or None if it has none yet."""
    return manifest["made"].get(CONFIGURATION, {}).get("configuration")


def read_manifest(root: Path) -> dict:
    """Return the manifest of a run's folder; without one, a manifest without files.

    Raises
    ------
    FormatError
        If the manifest is damaged, or of another run.
    """
    path = Path(root).absolute() / MANIFEST
    if not path.exists():
        return {"profile": path.parent.name, "plan": {}, "made": {}}
    return _parsed(path, *state_of(path))


# A process reads a manifest many times, while other processes change it.
@lru_cache(maxsize=4)
def _parsed(path: Path, size: int, changed: int) -> dict:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        expected = manifest.pop("checksum")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{path}: is damaged ({error}); {_anew(path.parent)}") from None
    if text_hash(json.dumps(manifest)) != expected:
        raise FormatError(f"{path}: has been changed by hand; {_anew(path.parent)}")
    check_form(path, manifest)
    if manifest["profile"] != (name := path.parent.name):
        raise FormatError(f"{path}: must be of the run {name}, got {manifest['profile']}; run files must not be moved")
    return manifest


@contextmanager
def changing(root: Path) -> Iterator[dict]:
    """Yield the manifest of a run's folder, and write its changes; other processes wait meanwhile."""
    root.mkdir(parents=True, exist_ok=True)
    with open(root / LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        manifest = copy.deepcopy(read_manifest(root))
        yield manifest
        temporary = root / f".{MANIFEST}.partial"
        with open(temporary, "wb") as file:
            file.write(encode(manifest))
        # Without the first call a power cut leaves an empty manifest, and without the second it can leave the previous one.
        _write_through(temporary)
        os.replace(temporary, root / MANIFEST)
        _write_through(root)


def _write_through(path: Path) -> None:
    """Wait until a file, or a folder's list of its files, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _anew(root: Path) -> str:
    return f"restore it from a copy, or move {root} away and run again"


def encode(manifest: dict) -> bytes:
    """Return the content of a manifest's file."""
    return json.dumps(manifest | {"checksum": text_hash(json.dumps(manifest))}, indent=0).encode()


def excerpt(manifest: dict, root: Path, files: Iterable[Path]) -> dict:
    """Return the manifest of some of a run's files alone, such as those in an archive."""
    kept = {path.relative_to(root).as_posix() for path in files if path.is_relative_to(root)}
    made = {place: entry for place, entry in manifest["made"].items() if place in kept}
    plan = {place: plan for place in made if (plan := planned_as(manifest["plan"], place))}
    return manifest | {"plan": plan, "made": made, "dropped": {}}


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def state_of(path: Path) -> list[int]:
    """Return a file's size and modification time in nanoseconds."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def options_hash(options: object) -> str:
    """Return the hash of settings, as plain JSON; other objects count as text."""
    return text_hash(json.dumps(options, sort_keys=True, default=str))


def text_hash(text: str) -> str:
    """Return the first digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
