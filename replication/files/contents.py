"""Contents of files whose checksum is right, and that may lack parts all the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from replication.files.errors import FormatError

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


class Contents(dict):
    """Named parts of a file; a missing one raises a FormatError with the file and the part."""

    def __init__(self, path: str | Path, parts: object):
        if not isinstance(parts, dict):
            raise FormatError(f"{path}: must contain an object with named values, got {parts!r:.60}")
        super().__init__(parts)
        self.path = path

    def __missing__(self, name: str) -> None:
        raise FormatError(f"{self.path}: must contain {name}, got {', '.join(map(str, self)) or 'nothing'}")


def read_json(path: Path) -> Contents:
    """Read a JSON file with an object.

    Raises
    ------
    FormatError
        If it is damaged, or another value.
    """
    return Contents(path, parsed(path, path.read_text(encoding="utf-8")))


def parsed(path: str | Path, text: str) -> object:
    """Return the value of a JSON text of a file; errors as in :func:`read_json`."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise FormatError(f"{path}: is damaged ({error})") from None


def check_tensors(path: str | Path, tensors: Mapping[str, Tensor], axes: Mapping[str, int]) -> None:
    """Check that a file has tensors with these numbers of axes, none of them empty.

    Raises
    ------
    FormatError
        If it has not; the error names the tensor and its shape.
    """
    for name, count in axes.items():
        if tensors[name].ndim != count or 0 in tensors[name].shape:
            raise FormatError(f"{path}: {name} must have {count} axes with values, got {list(tensors[name].shape)}")


def load_weights(module: Module, path: str | Path, weights: Mapping[str, Tensor], strict: bool = True) -> None:
    """Give a module the weights of a file.

    Raises
    ------
    FormatError
        If they have other names or shapes than the module's.
    """
    try:
        module.load_state_dict(weights, strict=strict)
    except RuntimeError as error:
        raise FormatError(f"{path}: weights do not fit the model's settings: {' '.join(str(error).split())}") from error
