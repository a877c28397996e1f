"""The attention graphs of the masked language model."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Model, Seed, paired


def extract(
    model: Model,
    tokens: Annotated[list[Path], typer.Option(help="sequences of one split, <split>.safetensors; repeat for others")],
    sequences: Annotated[list[int], typer.Option(help="how many of them, drawn at random; one number per split")],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for <split>/, one file of attention graphs per layer in each")],
    batch_size: Annotated[int, typer.Option(help="sequences at a time")] = 8,
) -> None:
    """Store the queries and keys of every layer, from which the gold attention graphs follow."""
    from replication.corpora.blocks import KIND
    from replication.files.storage import read_tensors
    from replication.graphs.shards import sample_sequences
    from replication.masked_lm.evaluation import extract_graphs
    from replication.masked_lm.model import load_entmax_model

    chosen = dict(paired(tokens=tokens, sequences=sequences))
    ids = {path: read_tensors(path, kind=KIND)["input_ids"] for path in chosen}
    network, control = load_entmax_model(model)
    for path, count in chosen.items():
        sequence = sample_sequences(len(ids[path]), count, seed)
        extract_graphs(network, control, ids[path], sequence, output / path.stem, batch_size)
