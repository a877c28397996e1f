"""The file of an archive: a zip whose comment, its last 64 bytes, is the SHA-256 of all bytes before."""

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from replication.files.storage import FormatError, replacing

#: Hexadecimal digits of the checksum.
DIGITS = 64
#: Zip keeps times; without them, equal files are equal archives.
NO_TIME = (1980, 1, 1, 0, 0, 0)


def write(path: Path, contents: Mapping[str, Path | bytes]) -> None:
    """Write files, or what is to be in them, under their names in the archive."""
    with replacing(path) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(contents.items()):
                _check_name(path, name)
                said = zipfile.ZipInfo(name, NO_TIME)
                said.compress_type, said.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(said, content if isinstance(content, bytes) else content.read_bytes())
            archive.comment = b"0" * DIGITS
        with open(temporary, "r+b") as file:
            digest = _checksum(file, temporary.stat().st_size - DIGITS)
            file.seek(-DIGITS, 2)
            file.write(digest)


def opened(path: Path) -> zipfile.ZipFile:
    """An archive of :func:`write` to read from, every byte of it as it was written.

    Raises
    ------
    FormatError
        If one byte has changed, is missing or has been added, or a name leads out of the archive.
    """
    with open(path, "rb") as file:
        size = path.stat().st_size - DIGITS
        digest = _checksum(file, size) if size > 0 else b""
        if file.read() != digest or not digest:
            raise FormatError(f"{path}: is no archive, or has changed since it was written")
    archive = zipfile.ZipFile(path)
    for name in archive.namelist():
        _check_name(path, name)
    return archive


def _checksum(file, size: int) -> bytes:
    """Of the first ``size`` bytes of a file, which is read up to there."""
    digest = hashlib.sha256()
    while size > 0 and (part := file.read(min(size, 2**20))):
        digest.update(part)
        size -= len(part)
    return digest.hexdigest().encode()


def _check_name(path: Path, name: str) -> None:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name:
        raise FormatError(f"{path}: {name} is not a path within an archive")
