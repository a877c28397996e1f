"""From aligned text to what fairseq reads."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Output, Source, Splits, Target, Words


def binarize(
    corpus: Annotated[Path, typer.Option(help="folder with <split>.<language>")],
    source: Source,
    target: Target,
    split: Splits,
    words: Words,
    merges: Annotated[int, typer.Option(help="merge operations of the joint byte pair encoding")],
    output: Output,
    like: Annotated[Path | None, typer.Option(help="take the codes and the dictionary of this output")] = None,
) -> None:
    """Tokenise aligned sentences, cut them into joint subwords, and write fairseq's binary format."""
    from replication.translation.data import binarize

    binarize(corpus, source, target, split, words, merges, output, like)
