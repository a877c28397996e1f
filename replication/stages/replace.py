"""The masked language model under predicted graphs."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.layers import students_of
from replication.stages.loading import load_network, masked_text
from replication.stages.options import (
    CentroidsOfSeeds,
    Masking,
    Methods,
    Model,
    ProjectionsOfSeeds,
    Seeds,
    Tokenizer,
    Tokens,
    Windows,
)


def replace(
    model: Model,
    tokenizer: Tokenizer,
    tokens: Tokens,
    projections: ProjectionsOfSeeds,
    centroids: CentroidsOfSeeds,
    methods: Methods,
    window: Windows,
    global_tokens: Annotated[str, typer.Option(help="none, first or first_last")],
    masking: Masking,
    seed: Seeds,
    output: Annotated[Path, typer.Option(help="folder for seed<n>.csv, and losses_seed<n>.parquet of every sequence")],
) -> None:
    """Perplexity with predicted graphs in place of the true ones, in all layers and heads at once, from every seed."""
    from replication.files.storage import write_table
    from replication.graphs.grids import expand
    from replication.graphs.replaced import Replacements
    from replication.masked_lm.evaluation import evaluate_replaced

    network, control, loaded = load_network(model, tokenizer)
    replacements = Replacements(students_of(projections, centroids, seed), expand(methods), window, global_tokens)
    table, losses = evaluate_replaced(
        network, control, masked_text(tokens, loaded, masking), replacements, masking["batch_size"]
    )
    table["global_tokens"] = global_tokens
    for one in seed:
        write_table(output / f"losses_seed{one}.parquet", losses[losses["seed"] == one])
        write_table(output / f"seed{one}.csv", table[table["seed"] == one])
