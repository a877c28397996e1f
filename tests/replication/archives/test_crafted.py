"""Archives that somebody has crafted: their checksum is right, and each is refused in one line before anything is unpacked."""

import hashlib
import json
import struct
import zipfile

import pytest

from replication.archives import replay as replaying
from replication.archives.container import DIGITS, opened, write
from replication.archives.replay import PUBLISHED, replay
from replication.files.storage import FormatError

NOTEBOOK = {
    "cells": [{"cell_type": "code", "source": "", "outputs": []}],
    "metadata": {"papermill": {"input_path": "notebooks/claims.ipynb", "parameters": {"profile": "tiny"}}},
}
RUN = {
    PUBLISHED: b"id\n",
    "results/tiny/config.yaml": b"profile: tiny\n",
    "results/tiny/claims.csv": b"id\n",
    "results/tiny/notebooks/claims.ipynb": json.dumps(NOTEBOOK).encode(),
}


def resealed(path):
    """Give a changed file the right checksum."""
    content = path.read_bytes()[:-DIGITS]
    path.write_bytes(content + hashlib.sha256(content).hexdigest().encode())


def refused(tmp_path, message):
    with pytest.raises(FormatError, match=message):
        replay(tmp_path / "run.zip", tmp_path / "unpacked")
    assert not (tmp_path / "unpacked").exists()


LACKING = {
    "results/tiny/claims.csv": "must contain results/tiny/claims.csv, which it would be compared with",
    PUBLISHED: f"must contain {PUBLISHED}",
    "results/tiny/config.yaml": "must contain the configuration of one run, got 0",
    "results/tiny/notebooks/claims.ipynb": "must contain a notebook in results/tiny/notebooks/, got none",
}


@pytest.mark.parametrize("name", LACKING)
def test_an_archive_that_lacks_what_is_compared_is_refused(tmp_path, name):
    write(tmp_path / "run.zip", {other: content for other, content in RUN.items() if other != name})
    refused(tmp_path, rf"run\.zip: {LACKING[name]}")


WRONG_NOTEBOOKS = {
    "no JSON": b"{", "a list": b"[]", "no metadata": b'{"cells": []}',
    "no code": json.dumps(NOTEBOOK | {"cells": []}).encode(),
    "another path": json.dumps(NOTEBOOK).replace("notebooks/claims", "../claims").encode(),
    "an option": json.dumps(NOTEBOOK).replace('"profile"', '"--kernel"').encode(),
    "no such notebook": json.dumps(NOTEBOOK).replace("notebooks/claims", "notebooks/none").encode(),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_NOTEBOOKS)
def test_notebooks_that_no_run_has_executed_are_refused(tmp_path, case):
    write(tmp_path / "run.zip", RUN | {"results/tiny/notebooks/claims.ipynb": WRONG_NOTEBOOKS[case]})
    refused(tmp_path, r"results/tiny/notebooks/claims\.ipynb: (is not an executed|was not made from a) notebook")


@pytest.mark.parametrize("value", ["../../../out", "/tmp/out", "a/out"])
def test_a_parameter_that_would_become_a_path_is_refused(tmp_path, value):
    """A figure's name became the path of a picture anywhere."""
    executed = json.loads(json.dumps(NOTEBOOK))
    executed["metadata"]["papermill"]["parameters"] |= {"figure": value}
    write(tmp_path / "run.zip", RUN | {"results/tiny/notebooks/claims.ipynb": json.dumps(executed).encode()})
    refused(tmp_path, rf"claims\.ipynb: files must be names in this folder, got {value}")


def test_a_run_deeper_in_the_archive_is_no_run(tmp_path):
    write(tmp_path / "run.zip", {f"elsewhere/{name}": content for name, content in RUN.items()})
    refused(tmp_path, "must contain the configuration of one run, got 0")


def test_names_that_occur_twice_are_refused(tmp_path):
    path = tmp_path / "run.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.csv", "1")
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("a.csv", "2")
        file.comment = b"0" * DIGITS
    resealed(path)
    refused(tmp_path, r"run\.zip: a\.csv occurs twice")


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path):
    write(tmp_path / "run.zip", RUN | {"results/tiny/big.csv": bytes(2**27)})
    refused(tmp_path, r"run\.zip: unpacks to 134,.* bytes, .* its largest file is results/tiny/big\.csv")


def test_files_that_are_no_zip_or_encrypted_or_damaged_are_refused(tmp_path):
    path = tmp_path / "run.zip"
    path.write_bytes(b"no zip" * 20 + b"0" * DIGITS)
    resealed(path)
    refused(tmp_path, r"run\.zip: is not an archive")
    write(path, RUN)
    whole = path.read_bytes()
    with opened(path) as file:
        first = file.infolist()[0]
    central = whole.index(b"PK\x01\x02")
    path.write_bytes(whole[: central + 8] + struct.pack("<H", 1) + whole[central + 10 :])
    resealed(path)
    refused(tmp_path, r"run\.zip: .* is encrypted")
    path.write_bytes(whole[: central + 10] + struct.pack("<H", 99) + whole[central + 12 :])
    resealed(path)
    refused(tmp_path, r"run\.zip: .* compressed by another method")
    at = first.header_offset + 30 + len(first.filename)
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    resealed(path)
    refused(tmp_path, r"run\.zip: ")


@pytest.mark.parametrize(("stream", "differs"), [("stderr", False), ("stdout", True)])
def test_a_warnings_temporary_file_is_no_difference(tmp_path, stream, differs):
    before, after = (
        {"cells": [{"cell_type": "code", "outputs": [{"name": stream, "text": [f"/tmp/ipykernel_{n}/1.py:8: warns"]}]}]}
        for n in (1, 2)
    )
    (tmp_path / "a.ipynb").write_text(json.dumps(after))
    assert replaying._differs(json.dumps(before).encode(), tmp_path / "a.ipynb") == differs


def test_a_failing_notebook_is_reported_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(replaying.sys, "executable", "false")
    with pytest.raises(ChildProcessError, match=r"claims\.ipynb: the notebook failed: ended with status 1"):
        replaying._run(tmp_path, ("results/tiny/notebooks/claims.ipynb", NOTEBOOK))
