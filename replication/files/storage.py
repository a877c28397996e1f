"""Files that are whole or not there: atomic writes, and tensors with a header that says what they are."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from replication.files.seals import FormatError, seal, unseal, verified

# Who has a table or a tensor to write has imported pandas or torch already; the others need not wait for them.
if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from torch import Tensor


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place if the block ends well, and is removed if it does not.

    What a stage writes is sealed then (:mod:`replication.files.seals`). What a killed writer of the same file left is removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{path.name}."
    for left in path.parent.glob(f"{glob.escape(prefix)}*.partial*"):
        _remove_unless_written(left)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=".partial" + path.suffix)
    # Who lives holds the lock: the system lets go of it when a process ends, however it ends.
    fcntl.flock(handle, fcntl.LOCK_EX)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        unseal(path)
        os.replace(temporary, path)
        seal(path)
    except OSError as error:
        # A full disk does not say which file there was no room for.
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
        os.close(handle)


def _remove_unless_written(partial: Path) -> None:
    with suppress(FileNotFoundError, BlockingIOError), open(partial, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        partial.unlink()


def write_json(path: str | Path, value: object) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n")


def write_table(path: str | Path, table: DataFrame, may_be_empty: Collection[str] = ()) -> None:
    """Write a tidy table as parquet or CSV, after the path's suffix.

    Raises ``ValueError`` if a cell is empty, NaN or infinite in a column that is not said to have such cells.
    """
    for column in table.columns.difference(list(may_be_empty), sort=False):
        if len(unknown := _not_known(table[column])):
            row = unknown[0]
            raise ValueError(f"{path}: column {column} of row {row} is {table[column].iloc[row]}")
    with replacing(path) as temporary:
        if Path(path).suffix == ".parquet":
            table.to_parquet(temporary, index=False)
        else:
            table.to_csv(temporary, index=False)


def _not_known(values: Series) -> list[int]:
    """Places of cells that are empty, NaN or infinite."""
    missing = values.isna()
    if values.dtype.kind == "f":
        missing |= values.abs() == float("inf")
    return missing.to_numpy().nonzero()[0].tolist()


def write_tensors(path: str | Path, tensors: dict[str, Tensor], *, kind: str, **header: object) -> None:
    """Save tensors as safetensors with a header: ``kind`` names the stage, the rest is plain JSON."""
    from safetensors.torch import save_file

    with replacing(path) as temporary:
        try:
            save_file(
                {name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, encode_header(kind, header)
            )
        except SafetensorError as error:
            raise OSError(f"{path}: could not be written ({error})") from error


def encode_header(kind: str, header: dict[str, object]) -> dict[str, str]:
    # One key only: safetensors writes several in a random order, and equal files should be equal bytes.
    return {"header": json.dumps({"kind": kind, **header, "provenance": provenance()}, sort_keys=True)}


def read_header(path: str | Path, *, kind: str) -> dict[str, object]:
    """The header of a file written by :func:`write_tensors`.

    Raises
    ------
    FormatError
        If the file is truncated, is no safetensors file, or is of another kind.
    """
    with open_tensors(path, kind=kind) as file:
        return json.loads(file.metadata()["header"])


@contextmanager
def open_tensors(path: str | Path, *, kind: str) -> Iterator[safe_open]:
    """Open a file of :func:`write_tensors`, memory-mapped; raises :class:`FormatError` as :func:`read_header` does."""
    if not Path(path).exists():
        raise FileNotFoundError(f"{path}: no such file")
    verified(Path(path))
    try:
        file = safe_open(path, framework="pt")
    except SafetensorError as error:
        raise FormatError(f"{path}: truncated, or not a safetensors file ({error})") from error
    with file:
        found = json.loads((file.metadata() or {}).get("header", "{}")).get("kind")
        if found != kind:
            raise FormatError(f"{path}: holds {found or 'something foreign'}, not {kind}")
        yield file


def read_tensors(path: str | Path, *, kind: str) -> dict[str, Tensor]:
    with open_tensors(path, kind=kind) as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def provenance() -> dict[str, str]:
    """What decides a number besides the arguments: the machine, versions, and a hash of the source."""
    packages = ("torch", "transformers", "scikit-learn", "numpy")
    return {
        "source": source_hash(),
        "hardware": hardware(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def hardware() -> str:
    """The accelerator if there is one, else the processor and its number of cores."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores"


def source_hash() -> str:
    """Hash over every Python file of replication, sparselib and its kernels; the same in a checkout and in an installation."""
    files = {}
    for package in ("replication", "sparselib"):
        folder = Path(find_spec(package).origin).parent
        files |= {Path(package, path.relative_to(folder)): path for path in folder.rglob("*.py")}
    # `folder` is the library's now. An installation has its kernels inside; importing them to ask would import torch.
    if not (folder / "kernels").is_dir():
        files |= {Path("sparselib/kernels", path.name): path for path in folder.with_name("kernels").glob("*.py")}
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(name.as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]
