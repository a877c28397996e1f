"""Documents of tokenised sentences, with gold annotation if the corpus has any, and their parquet files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from replication.files.storage import replacing

#: Sentences per row group of a parquet file.
ROWS_PER_GROUP = 10_000


@dataclass(frozen=True)
class Sentence:
    """Words in order, with their annotation.

    Raises
    ------
    ValueError
        If ``tags`` or ``chains`` are neither empty nor one per word.
    """

    words: list[str]
    #: One part-of-speech tag per word, of Universal Dependencies (UPOS) if the corpus has those.
    tags: list[str] = field(default_factory=list)
    #: One coreference chain per word, numbered within the document; -1 outside every chain.
    chains: list[int] = field(default_factory=list)

    def __post_init__(self):
        for name in ("tags", "chains"):
            annotation = getattr(self, name)
            if annotation and len(annotation) != len(self.words):
                raise ValueError(
                    f"`{name}` must be empty or one per word, got {len(annotation)} for {len(self.words)} words"
                )


@dataclass(frozen=True)
class Document:
    """Sentences that belong together; a coreference chain never leaves its document."""

    sentences: list[Sentence]


def write_documents(path: str | Path, documents: Iterable[Document], tag_source: str = "gold") -> None:
    """Write documents to a parquet file, with at most one row group in memory.

    Parameters
    ----------
    tag_source : str
        Origin of the tags, as :func:`read_tag_source` returns it.
    """
    # Readers of plain text need not wait for pyarrow.
    import pyarrow as pa
    from pyarrow import parquet

    strings = pa.list_(pa.string())
    columns = [("document", pa.int32()), ("words", strings), ("tags", strings), ("chains", pa.list_(pa.int32()))]
    schema = pa.schema(columns).with_metadata({"tag_source": tag_source})
    with replacing(path) as temporary, parquet.ParquetWriter(temporary, schema) as writer:
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
    """Return the origin of the tags of a file of :func:`write_documents`."""
    from pyarrow import parquet

    return parquet.read_schema(path).metadata[b"tag_source"].decode()


def read_documents(path: str | Path) -> Iterator[Document]:
    """Yield the documents of a file of :func:`write_documents`, reading one row group at a time."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        rows = (row for batch in file.iter_batches(ROWS_PER_GROUP) for row in batch.to_pylist())
        for _, sentences in groupby(rows, key=lambda row: row["document"]):
            yield Document([Sentence(row["words"], row["tags"], row["chains"]) for row in sentences])
