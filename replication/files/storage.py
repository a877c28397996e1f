"""Atomic file writes, and safetensors with a self-describing header."""

from __future__ import annotations

import errno
import fcntl
import glob
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from replication.files.contents import Contents, parsed
from replication.files.manifest import FormatError, add_output
from replication.files.provenance import provenance
from replication.files.schema import check_table

# pandas and torch are slow to import, and only callers with a table or a tensor need them.
if TYPE_CHECKING:
    from pandas import DataFrame
    from torch import Tensor

#: The user's mask of file permissions, which can only be read by setting it.
UMASK = os.umask(0o022)
os.umask(UMASK)
#: Errors of a full disk, an exhausted quota and a file that is too large.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FULL_TEXTS = ("PytorchStreamWriter failed writing", "iostream error", "unexpected pos", *map(os.strerror, FULL))


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that replaces it if the block succeeds, and is removed otherwise.

    If a stage writes the file, the manifest of its run then lists it (:mod:`replication.files.manifest`). Temporary files of
    killed writers of the same path are removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{path.name}."
    for left in path.parent.glob(f"{glob.escape(prefix)}*.partial*"):
        _remove_unless_written(left)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=".partial" + path.suffix)
    except OSError as error:
        error.filename = str(path)
        raise
    # The lock marks a living writer, because the system releases it whenever a process ends.
    fcntl.flock(handle, fcntl.LOCK_EX)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp hides the file from others, whatever the user's umask.
        temporary.chmod(0o666 & ~UMASK)
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
        add_output(path)
    except OSError as error:
        # The error of a full disk does not name the file.
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise
    except RuntimeError as error:
        if not is_full(error):
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)
        os.close(handle)


def is_full(error: BaseException | None) -> bool:
    """Return whether an error, or one that it follows, says that a disk has no room; PyTorch and safetensors have their own."""
    while error is not None:
        if getattr(error, "errno", None) in FULL or any(text in str(error) for text in FULL_TEXTS):
            return True
        error = error.__cause__ or error.__context__
    return False


def _remove_unless_written(partial: Path) -> None:
    """Remove a temporary file unless a living process writes it."""
    with suppress(FileNotFoundError, BlockingIOError), open(partial, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        partial.unlink()


def write_json(path: str | Path, value: object) -> None:
    """Write a value as indented JSON."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n")


def write_table(path: str | Path, table: DataFrame) -> None:
    """Write a tidy table as parquet or CSV, by the path's suffix.

    Raises
    ------
    ValueError
        If it does not have the columns of its place, or has impossible values in them (:mod:`replication.files.schema`).
    """
    path = Path(path)
    check_table(path, table)
    with replacing(path) as temporary:
        if path.suffix == ".parquet":
            table.to_parquet(temporary, index=False)
        else:
            table.to_csv(temporary, index=False)


def write_tensors(path: str | Path, tensors: dict[str, Tensor], *, kind: str, **header: object) -> None:
    """Write tensors as safetensors with a header.

    Parameters
    ----------
    kind : str
        Kind of the file, which :func:`open_tensors` checks.
    header
        Further values, as plain JSON.

    Raises
    ------
    ValueError
        If a tensor has a value that is NaN or infinite.
    OSError
        If the file cannot be written.
    """
    from safetensors.torch import save_file

    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ValueError(f"{path}: tensor {name} must not have NaN or infinite values")
    with replacing(path) as temporary:
        try:
            save_file(
                {name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, encode_header(kind, header)
            )
        except SafetensorError as error:
            raise OSError(f"{path}: could not be written ({error})") from error


def encode_header(kind: str, header: dict[str, object]) -> dict[str, str]:
    """Return safetensors metadata with a kind, further values and the provenance."""
    # One key only, because safetensors writes several in a random order, and equal files should have equal bytes.
    return {"header": json.dumps({"kind": kind, **header, "provenance": provenance()}, sort_keys=True)}


def read_header(path: str | Path, *, kind: str) -> dict[str, object]:
    """Return the header of a file of :func:`write_tensors`; errors as in :func:`open_tensors`."""
    with open_tensors(path, kind=kind) as file:
        return Contents(path, parsed(path, file.metadata()["header"]))


@contextmanager
def open_tensors(path: str | Path, *, kind: str) -> Iterator[safe_open]:
    """Open a file of :func:`write_tensors`, memory-mapped.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FormatError
        If the file is truncated, not a safetensors file, or of another kind.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        file = safe_open(path, framework="pt")
    except SafetensorError as error:
        raise FormatError(f"{path}: truncated, or not a safetensors file ({error})") from error
    with file:
        file_kind = Contents(path, parsed(path, (file.metadata() or {}).get("header", "{}"))).get("kind")
        if file_kind != kind:
            raise FormatError(f"{path}: must contain {kind}, got {file_kind or 'a foreign file'}")
        yield file


def read_tensors(path: str | Path, *, kind: str) -> dict[str, Tensor]:
    """Return all tensors of a file of :func:`write_tensors`; errors as in :func:`open_tensors`."""
    with open_tensors(path, kind=kind) as file:
        return Contents(path, {name: file.get_tensor(name) for name in file.keys()})
