"""Archive files: zip files whose comment, the last 64 bytes, is the SHA-256 of all bytes before it."""

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from replication.files.storage import FormatError, replacing

#: Hexadecimal digits of the checksum.
DIGITS = 64
#: The time of every file in the zip, so that equal files give equal archives.
NO_TIME = (1980, 1, 1, 0, 0, 0)


def write(path: Path, contents: Mapping[str, Path | bytes]) -> None:
    """Write an archive.

    Parameters
    ----------
    path : Path
        File of the archive.
    contents : mapping
        Files, or the bytes of files, by their names in the archive.

    Raises
    ------
    FormatError
        If a name leads out of the archive.
    """
    with replacing(path) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(contents.items()):
                _check_name(path, name)
                info = zipfile.ZipInfo(name, NO_TIME)
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(info, content if isinstance(content, bytes) else content.read_bytes())
            archive.comment = b"0" * DIGITS
        with open(temporary, "r+b") as file:
            digest = _checksum(file, temporary.stat().st_size - DIGITS)
            file.seek(-DIGITS, 2)
            file.write(digest)


def opened(path: Path) -> zipfile.ZipFile:
    """Open an archive of :func:`write` after checking its checksum.

    Raises
    ------
    FormatError
        If a byte is changed, missing or added, or a name leads out of the archive.
    """
    with open(path, "rb") as file:
        size = path.stat().st_size - DIGITS
        digest = _checksum(file, size) if size > 0 else b""
        if file.read() != digest or not digest:
            raise FormatError(f"{path}: is not an archive, or has changed since it was written")
    archive = zipfile.ZipFile(path)
    for name in archive.namelist():
        _check_name(path, name)
    return archive


def _checksum(file, size: int) -> bytes:
    """Read the first ``size`` bytes of a file and return their checksum."""
    digest = hashlib.sha256()
    while size > 0 and (part := file.read(min(size, 2**20))):
        digest.update(part)
        size -= len(part)
    return digest.hexdigest().encode()


def _check_name(path: Path, name: str) -> None:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name:
        raise FormatError(f"{path}: {name} is not a path within an archive")
