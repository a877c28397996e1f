"""The corpus as parquet: what is written comes back, whatever the row groups, whole or not at all."""

import pyarrow.parquet as pq
import pytest

from replication.corpora import documents as table
from replication.corpora.documents import Document, Sentence

DOCUMENTS = [
    Document([Sentence(["Él", "runs"], ["PRON", "VERB"], [0, -1]), Sentence(["He"], ["PRON"], [0])]),
    Document([Sentence(["no", "annotation"])]),
    Document([Sentence(["tags", "only"], ["NOUN", "ADV"]), Sentence(["chains"], [], [3]), Sentence(["x"] * 40)]),
    Document([Sentence(["last"])]),
]


@pytest.mark.parametrize(
    ("rows", "sizes"), [(1, [2, 1, 3, 1]), (2, [2, 4, 1]), (3, [3, 3, 1]), (4, [6, 1]), (10_000, [7])]
)
def test_documents_come_back_whatever_the_row_groups(tmp_path, monkeypatch, rows, sizes):
    monkeypatch.setattr(table, "ROWS_PER_GROUP", rows)
    path = tmp_path / "corpus" / "train.parquet"
    table.write_documents(path, DOCUMENTS)
    assert list(table.read_documents(path)) == DOCUMENTS
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert [size for size in groups if size] == sizes


def test_a_document_that_spans_batches_is_read_as_one(tmp_path, monkeypatch):
    table.write_documents(tmp_path / "a.parquet", DOCUMENTS)
    monkeypatch.setattr(table, "ROWS_PER_GROUP", 2)
    assert list(table.read_documents(tmp_path / "a.parquet")) == DOCUMENTS


def test_documents_are_written_while_they_come(tmp_path, monkeypatch):
    """The stream is never in memory as a whole: row groups leave before it ends."""
    monkeypatch.setattr(table, "ROWS_PER_GROUP", 2)
    sizes = []

    def stream():
        for _ in range(50):
            (partial,) = tmp_path.iterdir()
            sizes.append(partial.stat().st_size)
            yield Document([Sentence(["word"]), Sentence(["word"])])

    table.write_documents(tmp_path / "a.parquet", stream())
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 25


def test_a_stream_that_fails_leaves_nothing(tmp_path):
    def stream():
        yield DOCUMENTS[0]
        raise ValueError("line 3")

    with pytest.raises(ValueError, match="line 3"):
        table.write_documents(tmp_path / "a.parquet", stream())
    assert list(tmp_path.iterdir()) == []


def test_no_documents_are_an_empty_table(tmp_path):
    table.write_documents(tmp_path / "a.parquet", [])
    assert list(table.read_documents(tmp_path / "a.parquet")) == []


def test_whose_tags_they_are_is_kept(tmp_path):
    table.write_documents(tmp_path / "a.parquet", DOCUMENTS, "a tagger")
    table.write_documents(tmp_path / "b.parquet", DOCUMENTS)
    assert [table.read_tag_source(tmp_path / name) for name in ("a.parquet", "b.parquet")] == ["a tagger", "gold"]
    assert list(table.read_documents(tmp_path / "a.parquet")) == DOCUMENTS
