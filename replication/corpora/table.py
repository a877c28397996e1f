"""The corpus as the workflow keeps it: one parquet row per sentence."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from replication.corpora.documents import Document, Sentence
from replication.files.storage import replacing

SCHEMA = pa.schema(
    [
        ("document", pa.int32()),
        ("words", pa.list_(pa.string())),
        ("tags", pa.list_(pa.string())),
        ("chains", pa.list_(pa.int32())),
    ]
)
ROWS_PER_GROUP = 10_000


def write_documents(path: str | Path, documents: Iterable[Document], tag_source: str = "gold") -> None:
    """Write documents to a parquet file, never holding more than a row group; ``tag_source`` says whose tags they have."""
    schema = SCHEMA.with_metadata({"tag_source": tag_source})
    with replacing(path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        rows: list[dict] = []
        for number, document in enumerate(documents):
            rows += [
                {"document": number, "words": s.words, "tags": s.tags, "chains": s.chains} for s in document.sentences
            ]
            if len(rows) >= ROWS_PER_GROUP:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                rows = []
        writer.write_table(pa.Table.from_pylist(rows, schema))


def read_tag_source(path: str | Path) -> str:
    """Whose tags the documents have, if they have any."""
    return pq.read_schema(path).metadata[b"tag_source"].decode()


def read_documents(path: str | Path) -> Iterator[Document]:
    """Read back what :func:`write_documents` wrote, a row group at a time."""
    with pq.ParquetFile(path) as file:
        rows = (row for batch in file.iter_batches(ROWS_PER_GROUP) for row in batch.to_pylist())
        for _, sentences in groupby(rows, key=lambda row: row["document"]):
            yield Document([Sentence(row["words"], row["tags"], row["chains"]) for row in sentences])
