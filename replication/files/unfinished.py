"""Unfinished trainings: which code began them, and whether their checkpoints are as they were written."""

import json
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from replication.files.errors import FormatError
from replication.files.manifest import checksum, code_for
from replication.files.provenance import source_hash
from replication.files.storage import write_json

#: File of a checkpoint's folder, written last, with the checksums of the others.
SEAL = "checksums.json"


def keep_whole_checkpoints(folder: Path, settings: dict[str, object]) -> None:
    """Remove the checkpoints in ``folder`` that have other settings or are incomplete, and record settings and code.

    Raises
    ------
    ValueError
        If the checkpoints were begun by other code, or have changed since.
    """
    record, settings = folder / "settings.json", json.loads(json.dumps(settings, default=str))
    there, here = _recorded(record), origin(folder.parent)
    if folder.exists() and settings not in (there, there.get("settings")):
        shutil.rmtree(folder)
    if folder.exists():
        check_origin(folder, there, here)
    else:
        write_json(record, {"settings": settings, **here})
    for checkpoint in folder.glob("checkpoint-*"):
        if not _is_whole(checkpoint):
            shutil.rmtree(checkpoint)
        else:
            check_seal(checkpoint)
    # fairseq's, of the last and of the best update.
    for checkpoint in folder.glob("checkpoint_[lb]*.pt"):
        check_archive(checkpoint)


def origin(folder: Path) -> dict[str, str]:
    """Return the hashes of the code that trains a model in a folder: of all that its stage imports, and of the whole source."""
    return {"code": code_for(folder / "model.safetensors"), "source": source_hash()}


def check_origin(checkpoint: Path, there: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Check that a training would go on under the code that began it.

    Raises
    ------
    ValueError
        If other code began it.
    """
    if not any(there.get(name) == here[name] for name in here):
        raise ValueError(
            f"{checkpoint}: this training was begun by other code ({there.get('code')}, now {here['code']});"
            f" to go on, return to that code; to begin anew, move {checkpoint} away"
        )


def seal(checkpoint: Path) -> None:
    """Write the checksums of all files of a checkpoint's folder."""
    write_json(
        checkpoint / SEAL, {path.name: checksum(path) for path in sorted(checkpoint.glob("[!.]*")) if path.is_file()}
    )


def check_seal(checkpoint: Path) -> None:
    """Check that all files of a sealed checkpoint are as they were written.

    Raises
    ------
    FormatError
        If one has changed.
    """
    try:
        sealed = json.loads((checkpoint / SEAL).read_text())
        changed = [name for name, digest in sealed.items() if checksum(checkpoint / name) != digest]
    except (ValueError, AttributeError, OSError):
        changed = [SEAL]
    if changed:
        raise changed_since(checkpoint / changed[0])


def check_archive(path: Path) -> None:
    """Check a file of ``torch.save``, a zip with a checksum of each tensor, which ``torch.load`` ignores.

    Raises
    ------
    FormatError
        If it has changed.
    """
    try:
        with zipfile.ZipFile(path) as file:
            is_whole = file.testzip() is None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        is_whole = False
    if not is_whole:
        raise changed_since(path)


def changed_since(path: Path) -> FormatError:
    """Return the error for a changed file of an unfinished training."""
    return FormatError(f"{path}: has changed since the training wrote it; move {path.parent} away to train again")


def _recorded(record: Path) -> dict[str, object]:
    if not record.exists():
        return {}
    try:
        return dict(json.loads(record.read_text()))
    except (ValueError, TypeError):
        raise changed_since(record) from None


def _is_whole(checkpoint: Path) -> bool:
    """Return whether a checkpoint is complete: the Trainer writes ``trainer_state.json`` last, and we its checksums."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_text())
    except (FileNotFoundError, ValueError):
        return False
    return (checkpoint / SEAL).exists()
