"""Archive files: zip files whose comment, the last 64 bytes, is the SHA-256 of all bytes before it."""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from replication.files.names import place_within
from replication.files.storage import FormatError, replacing

#: Hexadecimal digits of the checksum.
DIGITS = 64
#: The time of every file in the zip, so that equal files give equal archives.
NO_TIME = (1980, 1, 1, 0, 0, 0)

#: Flag of a zip's encrypted file.
ENCRYPTED = 1
#: An archive may unpack to this multiple of its size, which none of a run reaches, and to these bytes in any case.
MOST_GROWTH, ALWAYS_FITS = 50, 2**26


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
                place_within(path, name)
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
        If a byte is changed, missing or added, a name leads out of the archive or occurs twice, or a file is encrypted, damaged
        or far larger than the archive.
    """
    with open(path, "rb") as file:
        size = path.stat().st_size - DIGITS
        digest = _checksum(file, size) if size > 0 else b""
        if file.read() != digest or not digest:
            raise FormatError(f"{path}: is not an archive, or has changed since it was written")
    try:
        archive = zipfile.ZipFile(path)
        _check_members(path, archive)
        damaged = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise FormatError(f"{path}: is not an archive ({error})") from error
    if damaged is not None:
        raise FormatError(f"{path}: {damaged} is damaged")
    return archive


def _check_members(path: Path, archive: zipfile.ZipFile) -> None:
    members, names = archive.infolist(), set()
    for member in members:
        place_within(path, member.filename)
        if member.filename in names:
            raise FormatError(f"{path}: {member.filename} occurs twice")
        names.add(member.filename)
        if member.flag_bits & ENCRYPTED:
            raise FormatError(f"{path}: {member.filename} is encrypted")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FormatError(f"{path}: {member.filename} is compressed by another method than deflate")
    total, limit = sum(member.file_size for member in members), MOST_GROWTH * path.stat().st_size + ALWAYS_FITS
    if total > limit:
        largest = max(members, key=lambda member: member.file_size).filename
        raise FormatError(
            f"{path}: unpacks to {total:,} bytes, which is too much for its size; its largest file is {largest}"
        )


def _checksum(file, size: int) -> bytes:
    """Read the first ``size`` bytes of a file and return their checksum."""
    digest = hashlib.sha256()
    while size > 0 and (part := file.read(min(size, 2**20))):
        digest.update(part)
        size -= len(part)
    return digest.hexdigest().encode()
