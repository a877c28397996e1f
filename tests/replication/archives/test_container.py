import random
import zipfile

import pytest

from replication.archives.container import DIGITS, opened, write
from replication.files.storage import FormatError

CONTENTS = {"a/one.csv": b"layer,recall\n0,0.5\n" * 20, "two.json": b"{}", "b/three.json": b"[1, 2]"}


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "run.zip"
    write(path, CONTENTS)
    return path


def test_what_was_written_is_read(archive):
    with opened(archive) as file:
        assert {name: file.read(name) for name in file.namelist()} == CONTENTS


def test_any_zip_program_reads_it(archive):
    with zipfile.ZipFile(archive) as file:
        assert file.testzip() is None
        assert len(file.comment) == DIGITS


def test_equal_files_are_equal_archives(archive, tmp_path):
    source = tmp_path / "one.csv"
    source.write_bytes(CONTENTS["a/one.csv"])
    again = tmp_path / "again.zip"
    write(again, dict(reversed(CONTENTS.items())) | {"a/one.csv": source})
    assert again.read_bytes() == archive.read_bytes()


def test_one_changed_byte_anywhere_is_found(archive):
    whole = archive.read_bytes()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << random.Random(at).randrange(8)
        archive.write_bytes(changed)
        with pytest.raises(FormatError, match=r"run\.zip: is not an archive, or has changed"):
            opened(archive)


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"0", lambda b: b"", lambda b: b[:10]])
def test_cut_and_lengthened_archives_are_refused(archive, change):
    archive.write_bytes(change(archive.read_bytes()))
    with pytest.raises(FormatError, match="is not an archive"):
        opened(archive)


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out", "a\\out", "", ".", "./out", "a//out", "a\nout"])
def test_a_name_that_leads_out_is_refused(tmp_path, name, monkeypatch):
    path = tmp_path / "run.zip"
    with pytest.raises(FormatError, match="not a path within"):
        write(path, {name: b""})
    # An archive of somebody else's.
    with monkeypatch.context() as patch:
        patch.setattr("replication.archives.container.place_within", lambda *_: None)
        write(path, {name: b""})
    with pytest.raises(FormatError, match="not a path within"):
        opened(path)
