"""The masked language model under predicted graphs."""

from typing import Annotated

import typer

from replication.stages.loading import load_network, masked_text
from replication.stages.options import (
    Centroids,
    Losses,
    Masking,
    Methods,
    Model,
    Output,
    Projections,
    Seed,
    Tokenizer,
    Tokens,
    Windows,
)


def replace(
    model: Model,
    tokenizer: Tokenizer,
    tokens: Tokens,
    projection: Projections,
    centroids: Centroids,
    methods: Methods,
    window: Windows,
    global_tokens: Annotated[str, typer.Option(help="none, first or first_last")],
    masking: Masking,
    seed: Seed,
    output: Output,
    losses: Losses,
) -> None:
    """Perplexity with predicted graphs in place of the true ones, in all layers and heads at once."""
    from replication.graphs import projections
    from replication.graphs.centroids import load
    from replication.graphs.grids import expand
    from replication.graphs.replaced import Replacements
    from replication.masked_lm.evaluation import evaluate_replaced
    from replication.storage import write_table

    network, control, loaded = load_network(model, tokenizer)
    table, of_sequences = evaluate_replaced(
        network,
        control,
        masked_text(tokens, loaded, masking),
        Replacements(
            [projections.load(path) for path in projection],
            [load(path) for path in centroids],
            expand(methods),
            window,
            global_tokens,
            seed * 1000,
        ),
        masking["batch_size"],
    )
    table.insert(0, "seed", seed)
    of_sequences.insert(0, "seed", seed)
    write_table(losses, of_sequences)
    write_table(output, table.assign(global_tokens=global_tokens))
