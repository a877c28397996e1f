"""A corpus, written or read."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Corpus, Splits


def corpus(
    source: Corpus,
    split: Splits,
    output: Annotated[Path, typer.Option(help="folder for one parquet file per split")],
    tag: Annotated[list[str] | None, typer.Option(help="splits to tag where they have no gold tags")] = None,
) -> None:
    """Write or read a corpus: documents, sentences, words, and their annotation where there is any."""
    from replication.corpora.sources import read_splits
    from replication.corpora.table import write_documents

    for name, documents in read_splits(source, split).items():
        tag_source = "gold"
        if name in (tag or []):
            from replication.corpora.tagging import with_tags

            documents, tag_source = with_tags(documents)
        write_documents(output / f"{name}.parquet", documents, tag_source)
