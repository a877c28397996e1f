"""Characters as ids, and streams that lose nothing of a text."""

import gzip

import pytest
import torch

from replication.char_lm.corpus import read_text, split_text, text_of
from replication.char_lm.data import IGNORED, Alphabet, cut
from replication.corpora.documents import Document, Sentence


def test_documents_become_lines_and_paragraphs():
    documents = [Document([Sentence(["A", "dog", "."]), Sentence(["Él", "."])]), Document([Sentence(["B", "."])])]
    assert text_of(documents) == "A dog .\nÉl .\n\nB .\n".encode()


def test_a_text_is_split_by_size_without_loss():
    text = bytes(range(200))
    splits = split_text(text)
    assert {name: len(part) for name, part in splits.items()} == {"train": 180, "valid": 10, "test": 10}
    assert b"".join(splits.values()) == text


def test_bytes_are_numbered_in_order_and_unknown_ones_are_zero():
    alphabet = Alphabet.of(b"banana\xff")
    assert len(alphabet) == 5
    assert alphabet.encode(b"ban\xffz\x00").tolist() == [2, 1, 3, 4, 0, 0]
    assert len(Alphabet.of(bytes(range(256)))) == 257


@pytest.mark.parametrize(("size", "rows"), [(25, 4), (24, 4), (22, 1), (23, 3), (30, 4)])
def test_streams_predict_every_character_but_the_first_once(size, rows):
    ids = torch.arange(size, dtype=torch.int16) + 1
    stream = cut(ids, rows, 5)
    assert len(stream.inputs) == rows
    present = stream.targets != IGNORED
    assert stream.targets[present].tolist() == ids[1:].tolist()
    assert stream.inputs[present].tolist() == ids[:-1].tolist()


def test_segments_continue_their_rows():
    stream = cut(torch.arange(40), rows=3, length=4)
    inputs, targets = map(list, zip(*stream.segments(4), strict=True))
    assert [part.shape[1] for part in inputs] == [4, 4, 4, 1]
    assert torch.equal(torch.cat(inputs, 1), stream.inputs)
    assert torch.equal(torch.cat(targets, 1), stream.targets)
    assert inputs[0].dtype == torch.int64


def test_a_text_shorter_than_a_batch_of_segments_is_named():
    assert cut(torch.arange(13), rows=3, length=4).inputs.shape == (3, 4)
    with pytest.raises(ValueError, match="more than 12 characters for 3 rows of segments of 4, got 12"):
        cut(torch.arange(12), rows=3, length=4)


@pytest.mark.parametrize(("rows", "length", "name"), [(0, 4, "rows"), (3, 0, "length")])
def test_sizes_below_one_are_named(rows, length, name):
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1"):
        cut(torch.arange(50), rows, length)


def test_files_are_read_gzipped_or_not(tmp_path):
    (tmp_path / "enwik8").write_bytes(b"\xff text")
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"\xff text"))
    assert read_text(tmp_path / "enwik8") == read_text(tmp_path / "text.gz") == b"\xff text"


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: b"no gzip", lambda content: b""])
def test_a_damaged_file_is_named(tmp_path, damage):
    path = tmp_path / "text.gz"
    path.write_bytes(damage(gzip.compress(b"some text" * 9)) or b"\x1f")
    with pytest.raises(ValueError, match=r"text\.gz: truncated or damaged"):
        read_text(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="enwik8"):
        read_text(tmp_path / "enwik8")
