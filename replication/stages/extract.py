"""The attention graphs of the masked language model."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Model, Seed


def extract(
    model: Model,
    tokens: Annotated[Path, typer.Option(help="sequences of one split")],
    sequences: Annotated[int, typer.Option(help="how many of them, drawn at random")],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for one file of attention graphs per layer")],
    batch_size: Annotated[int, typer.Option()] = 8,
) -> None:
    """Store the queries and keys of every layer, from which the gold attention graphs follow."""
    from replication.corpora.blocks import KIND
    from replication.graphs.shards import sample_sequences
    from replication.masked_lm.evaluation import extract_graphs
    from replication.masked_lm.model import load_entmax_model
    from replication.storage import read_tensors

    input_ids = read_tensors(tokens, kind=KIND)["input_ids"]
    network, control = load_entmax_model(model)
    extract_graphs(network, control, input_ids, sample_sequences(len(input_ids), sequences, seed), output, batch_size)
