"""Names of files that a file brings along, such as an archive's members: the one check of each before it becomes a path."""

import unicodedata
from pathlib import Path, PurePosixPath

from replication.files.errors import FormatError


def file_name(source: Path, name: object) -> str:
    """Return the name of a file that lies directly beside ``source``, such as ``model.safetensors``.

    Raises
    ------
    FormatError
        If it is a path, or leads out of the folder.
    """
    if "/" in place_within(source, name):
        raise _refused(source, name)
    return name


def place_within(source: Path, name: object) -> str:
    """Return the path of a file below a folder, as ``source`` states it.

    Parameters
    ----------
    source : Path
        The file that has the path in its content, for the error.
    name : object
        The path, with ``/`` between its parts.

    Raises
    ------
    FormatError
        If it is no text, is absolute or leads out of the folder, or is another way to write a shorter path.
    """
    if not isinstance(name, str) or "\\" in name or any(unicodedata.category(letter) == "Cc" for letter in name):
        raise _refused(source, name)
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.as_posix() != name or name == ".":
        raise _refused(source, name)
    return name


def _refused(source: Path, name: object) -> FormatError:
    shown = name if isinstance(name, str) and name.isprintable() else repr(name)
    return FormatError(f"{source}: files must be names in this folder, got {shown}, which is not a path within it")
