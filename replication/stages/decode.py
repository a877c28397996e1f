"""The translator under predicted graphs."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.layers import students_of
from replication.stages.options import (
    Beam,
    CentroidsOfSeeds,
    Data,
    Methods,
    ProjectionsOfSeeds,
    References,
    Seeds,
    Split,
    Translator,
    Windows,
    Words,
)


def decode(
    model: Translator,
    data: Data,
    references: References,
    split: Split,
    sentences: Annotated[int, typer.Option(help="the first so many sentences of the split")],
    beam: Beam,
    words: Words,
    projections: ProjectionsOfSeeds,
    centroids: CentroidsOfSeeds,
    methods: Methods,
    window: Windows,
    global_tokens: Annotated[str, typer.Option(help="none or first")],
    seed: Seeds,
    output: Annotated[
        Path, typer.Option(help="folder for seed<n>.csv, and sentences_seed<n>.parquet with what BLEU adds up")
    ],
    batch_tokens: Annotated[
        int,
        typer.Option(help="tokens of a batch, which holds its sentences once for every graph of a member of the grid"),
    ] = 32000,
) -> None:
    """BLEU of beam search with predicted graphs in the decoder's self-attention, in all layers and heads, from every seed."""
    from replication.files.storage import write_table
    from replication.graphs.grids import expand
    from replication.graphs.replaced import Replacements
    from replication.translation.evaluation import evaluate_replaced
    from replication.translation.model import load_translator

    translator = load_translator(model, data)
    replacements = Replacements(students_of(projections, centroids, seed), expand(methods), window, global_tokens)
    table, counts = evaluate_replaced(
        translator,
        split,
        references.read_text(encoding="utf-8").splitlines()[:sentences],
        words,
        replacements,
        beam,
        batch_tokens,
    )
    table = table.assign(global_tokens=global_tokens, sentences=sentences)
    for one in seed:
        write_table(output / f"sentences_seed{one}.parquet", counts[counts["seed"] == one])
        write_table(output / f"seed{one}.csv", table[table["seed"] == one])
