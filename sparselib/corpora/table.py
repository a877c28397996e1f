"""The corpus as the workflow keeps it: one parquet row per sentence."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sparselib.corpora.documents import Document, Sentence
from sparselib.storage import replacing

SCHEMA = pa.schema(
    [
        ("document", pa.int32()),
        ("words", pa.list_(pa.string())),
        ("tags", pa.list_(pa.string())),
        ("chains", pa.list_(pa.int32())),
    ]
)
ROWS_PER_GROUP = 10_000


def write_documents(path: str | Path, documents: Iterable[Document]) -> None:
    """Write documents to a parquet file, never holding more than a row group."""
    with replacing(path) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
        rows: list[dict] = []
        for number, document in enumerate(documents):
            rows += [
                {"document": number, "words": s.words, "tags": s.tags, "chains": s.chains} for s in document.sentences
            ]
            if len(rows) >= ROWS_PER_GROUP:
                writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
                rows = []
        writer.write_table(pa.Table.from_pylist(rows, SCHEMA))


def read_documents(path: str | Path) -> Iterator[Document]:
    """Read back what :func:`write_documents` wrote, a row group at a time."""
    with pq.ParquetFile(path) as file:
        rows = (row for batch in file.iter_batches(ROWS_PER_GROUP) for row in batch.to_pylist())
        for _, sentences in groupby(rows, key=lambda row: row["document"]):
            yield Document([Sentence(row["words"], row["tags"], row["chains"]) for row in sentences])
