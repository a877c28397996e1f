"""Aligned text of several languages, written or read."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Corpus, Splits


def parallel_corpus(
    source: Corpus,
    split: Splits,
    language: Annotated[list[str], typer.Option(help="repeat for every language")],
    output: Annotated[Path, typer.Option(help="folder for <split>.<language>")],
    block_words: Annotated[int | None, typer.Option(help="join a document's sentences up to so many words")] = None,
    align: Annotated[
        list[str] | None, typer.Option(help="splits whose word alignment to write, if it is known")
    ] = None,
    words: Annotated[
        str, typer.Option(help="whose alignment it is: moses, or spaces if words have one between them")
    ] = "spaces",
) -> None:
    """Write or read aligned sentences, or blocks of them, one plain text file per split and language."""
    from replication.corpora.parallel import write_parallel
    from replication.corpora.sources import read_alignments, read_document_blocks, read_parallel_splits
    from replication.files.storage import replacing

    if block_words is not None and align:
        raise ValueError("--align: blocks of sentences have no word alignment; leave out one of --align, --block-words")
    if block_words is None:
        texts = read_parallel_splits(source, split, language)
    else:
        texts = read_document_blocks(source, split, language, block_words)
    for name, lines in texts.items():
        write_parallel(output, name, lines)
    if align:
        # Which sentences a split gets, all splits together decide.
        alignments = read_alignments(source, split, language, words)
        for name in alignments.keys() & align:
            # Not as text, of which no line may be empty.
            with replacing(output / f"{name}.alignment") as temporary:
                temporary.write_text("".join(f"{line}\n" for line in alignments[name]), encoding="utf-8")
