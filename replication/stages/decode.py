"""The translator under predicted graphs."""

from typing import Annotated

import typer

from replication.stages.options import (
    BatchTokens,
    Beam,
    Centroids,
    Counts,
    Data,
    Methods,
    Output,
    Projections,
    References,
    Seed,
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
    projection: Projections,
    centroids: Centroids,
    methods: Methods,
    window: Windows,
    global_tokens: Annotated[str, typer.Option(help="none or first")],
    seed: Seed,
    output: Output,
    counts: Counts,
    batch_tokens: BatchTokens = 4000,
) -> None:
    """BLEU of beam search with predicted graphs in the decoder's self-attention, in all layers and heads at once."""
    from replication.graphs import projections
    from replication.graphs.centroids import load
    from replication.graphs.grids import expand
    from replication.graphs.replaced import Replacements
    from replication.storage import write_table
    from replication.translation.evaluation import evaluate_replaced
    from replication.translation.model import load_translator

    table, of_sentences = evaluate_replaced(
        load_translator(model, data),
        split,
        references.read_text(encoding="utf-8").splitlines()[:sentences],
        words,
        Replacements(
            [projections.load(path) for path in projection],
            [load(path) for path in centroids],
            expand(methods),
            window,
            global_tokens,
            seed * 1000,
        ),
        beam,
        batch_tokens,
    )
    table.insert(0, "seed", seed)
    of_sentences.insert(0, "seed", seed)
    write_table(counts, of_sentences)
    write_table(output, table.assign(global_tokens=global_tokens, sentences=sentences))
