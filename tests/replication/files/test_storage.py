"""Files that are whole or not there, and that say what they are."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from replication.files.paths import ROOT
from replication.files.provenance import provenance, source_hash
from replication.files.storage import (
    FormatError,
    open_tensors,
    read_header,
    read_tensors,
    replacing,
    write_json,
    write_table,
    write_tensors,
)

TENSORS = {
    "numbers": torch.arange(12, dtype=torch.int64).view(3, 4),
    "transposed": torch.arange(6.0).view(2, 3).mT,  # not contiguous
    "flags": torch.tensor([True, False]),
    "half": torch.tensor([0.5, -2.0], dtype=torch.bfloat16),
}


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "made" / "tensors.safetensors"
    write_tensors(path, TENSORS, kind="things", seed=3, settings={"rate": 0.1})
    return path


def test_replacing_puts_the_new_file_in_the_place_of_the_old(tmp_path):
    path = tmp_path / "new folder" / "file.txt"
    for text in ("first", "second"):
        with replacing(path) as temporary:
            assert temporary.parent == path.parent
            assert temporary.suffix == path.suffix
            temporary.write_text(text)
            assert not path.exists() or path.read_text() == "first"
            written = temporary.stat().st_ino
        assert path.read_text() == text
        assert path.stat().st_ino == written  # moved, not copied: there is no moment of half a file
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("old", [None, "old"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_what_was_there_and_no_debris(tmp_path, old, error):
    path = tmp_path / "file.txt"
    if old is not None:
        path.write_text(old)

    def interrupted():
        with replacing(path) as temporary:
            temporary.write_text("half of i")
            raise error

    with pytest.raises(error):
        interrupted()
    assert [entry.name for entry in tmp_path.iterdir()] == ([] if old is None else ["file.txt"])
    assert old is None or path.read_text() == old


HALF = """
import sys, time
from replication.files.storage import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half of i")
    print(temporary, flush=True)
    time.sleep(600)
"""


def test_what_a_killed_writer_left_goes_with_the_next_write_and_what_a_living_one_writes_stays(tmp_path):
    path = tmp_path / "file[1].txt"  # a name that means something to glob
    command, there = [sys.executable, "-c", HALF, str(path)], {"cwd": ROOT, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **there) as killed, subprocess.Popen(command, **there) as alive:
        left, kept = Path(killed.stdout.readline().strip()), Path(alive.stdout.readline().strip())
        killed.kill()
        killed.wait()
        assert left.exists()
        with replacing(path) as temporary:
            temporary.write_text("whole")
        assert sorted(tmp_path.iterdir()) == sorted([path, kept])
        alive.kill()
    write_json(path, "the last")
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "table.parquet"
    table = pd.DataFrame({"a": [1, 2]})
    write_table(path, table)
    with pytest.raises(Exception, match="mixed"):
        write_table(path, pd.DataFrame({"mixed": [1, {"two": 2}]}))
    pd.testing.assert_frame_equal(pd.read_parquet(path), table)
    assert list(tmp_path.iterdir()) == [path]


def test_tensors_come_back_as_they_were(written):
    found = read_tensors(written, kind="things")
    assert found.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_any_safetensors_reader_reads_them(written):
    assert torch.equal(load_file(written)["transposed"], TENSORS["transposed"])


def test_header_holds_what_was_given_and_where_it_came_from(written):
    header = read_header(written, kind="things")
    assert header.pop("provenance") == provenance()
    assert header == {"kind": "things", "seed": 3, "settings": {"rate": 0.1}}


def test_provenance_is_plain_and_names_the_source():
    found = provenance()
    assert found["source"] == source_hash()
    assert found["torch"] == torch.__version__
    assert all(isinstance(value, str) and value for value in found.values())


def hash_of(folder) -> str:
    """The source's hash of what lies in a folder that comes before all others in a new process."""
    script = "from replication.files import provenance as p; print(p.__file__, p.source_hash())"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    file, value = done.stdout.split()
    assert file.startswith(str(folder))
    return value


def test_the_hash_of_the_source_changes_with_any_byte_of_any_package(tmp_path):
    """And it does not depend on where the kernels lie: in a checkout beside the library, in an installation inside it."""
    checkout, installed = tmp_path / "checkout", tmp_path / "installed"
    for package, inside in {"replication": "", "sparselib": "", "kernels": "sparselib"}.items():
        shutil.copytree(ROOT / package, checkout / package)
        shutil.copytree(ROOT / package, installed / inside / package)
    (installed / "kernels").mkdir()
    (installed / "kernels/__init__.py").write_text("# Hugging Face's\n")
    first = hash_of(checkout)
    assert hash_of(installed) == first == source_hash()
    for file in ("kernels/reference.py", "sparselib/masks/local.py", "replication/translation/fairseq/commands.py"):
        text = (checkout / file).read_bytes()
        (checkout / file).write_bytes(text + b" ")
        assert hash_of(checkout) != first
        (checkout / file).write_bytes(text)
    assert hash_of(checkout) == first


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 100, 300, -1, -8, -64])
def test_a_truncated_file_is_a_format_error(written, kept):
    whole = written.read_bytes()
    written.write_bytes(whole[:kept])
    for read in (read_header, read_tensors):
        with pytest.raises(FormatError, match=rf"{written.name}: truncated"):
            read(written, kind="things")


@pytest.mark.parametrize("content", [b"not a tensor\n" * 20, b"\x80\x04\x95", b"\x00" * 64, b"\xff" * 64])
def test_a_file_that_is_no_safetensors_file_is_a_format_error(tmp_path, content):
    path = tmp_path / "file.safetensors"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"file\.safetensors"):
        read_tensors(path, kind="things")


def test_another_kind_is_a_format_error_that_names_both(written):
    with pytest.raises(FormatError, match=r"must contain centroids, got things"):
        read_tensors(written, kind="centroids")
    with pytest.raises(FormatError, match=r"must contain centroids, got things"):
        read_header(written, kind="centroids")


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_foreign_safetensors_file_is_a_format_error(tmp_path, metadata):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(2)}, path, metadata)
    with pytest.raises(FormatError, match="a foreign file"):
        read_tensors(path, kind="things")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.safetensors"):
        read_tensors(tmp_path / "absent.safetensors", kind="things")


def test_errors_inside_the_block_are_not_taken_for_damage(written):
    with pytest.raises(ZeroDivisionError), open_tensors(written, kind="things"):
        1 / 0  # noqa: B018


def test_a_header_that_is_not_json_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(TypeError):
        write_tensors(tmp_path / "file.safetensors", TENSORS, kind="things", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_come_back_as_they_were(tmp_path, suffix):
    table = pd.DataFrame({"method": ["a", "b"], "window": [0, 3], "recall": [0.1 + 0.2, 1 / 3]}, index=[5, 6])
    path = tmp_path / f"table{suffix}"
    write_table(path, table)
    read = pd.read_csv if suffix == ".csv" else pd.read_parquet
    pd.testing.assert_frame_equal(read(path), table.reset_index(drop=True), check_exact=True)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_same_table_is_the_same_file(tmp_path, suffix):
    table = pd.DataFrame({"recall": [0.1, 0.2]})
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in paths:
        write_table(path, table)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_json_comes_back_as_it_was(tmp_path):
    path = tmp_path / "value.json"
    write_json(path, {"a": [1, 2.5, None], "b": "ä"})
    assert json.loads(path.read_text()) == {"a": [1, 2.5, None], "b": "ä"}
