"""Stages of the efficient, block-based Sparsefinder (section 6.1)."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.masked_lm import Masking, Model, Tokenizer, load_network, masked_text
from replication.stages.options import json_object, stage

Blocks = Annotated[
    dict, typer.Option(parser=json_object, help='{"counts", "clusters", "pooling", "metric"}; others are ignored')
]
BlockSize = Annotated[int, typer.Option(help="tokens per block")]
Tokens = Annotated[Path, typer.Option(help="validation sequences")]
Projections = Annotated[list[Path], typer.Option("--projection", help="one per layer, in order")]
Centroids = Annotated[list[Path], typer.Option("--centroids", help="one per layer, in order")]
Seed = Annotated[int, typer.Option()]
Output = Annotated[Path, typer.Option()]


def register(app: typer.Typer) -> None:
    for function in (fit_blocks, evaluate_blocks, time_blocks):
        app.command(function.__name__.replace("_", "-"))(stage(function))


def fit_blocks(
    graphs: Annotated[list[Path], typer.Option(help="attention graphs, one per layer, in order")],
    block_size: BlockSize,
    settings: Annotated[dict, typer.Option(parser=json_object, help="arguments of fit_projection")],
    blocks: Blocks,
    points: Annotated[int, typer.Option(help="at most this many query and key chunks per head")],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for projections/ and centroids/, one file per layer in each")],
) -> None:
    """Learn the projections of chunks of one size, and their centroids for every number of clusters, in all layers."""
    from replication.graphs import centroids, projections
    from replication.graphs.shards import open_graphs
    from sparselib.blocks.chunks import Chunks

    chunks = Chunks(block_size, blocks["pooling"])
    header = {"block_size": block_size, "pooling": chunks.pooling, "seed": seed}
    for path in graphs:
        with open_graphs(path) as layer:
            projection, losses = projections.fit_layer_projection(layer, settings, seed, chunks)
            fitted = centroids.fit_block_layer(layer, projection, chunks, blocks["clusters"], points, seed)
            header |= {"layer": layer.header["layer"]}
        projections.save(output / "projections" / path.name, projection, settings=settings, losses=losses, **header)
        centroids.save(output / "centroids" / path.name, fitted, points=points, **header)


def evaluate_blocks(
    model: Model,
    tokenizer: Tokenizer,
    tokens: Tokens,
    projection: Projections,
    centroids: Centroids,
    block_size: BlockSize,
    blocks: Blocks,
    masking: Masking,
    seed: Seed,
    output: Output,
) -> None:
    """Perplexity when every layer visits predicted, random or all blocks of one size."""
    from replication.masked_lm import blocks as masked_lm_blocks
    from replication.storage import write_table
    from sparselib.blocks.chunks import Chunks

    network, control, loaded = load_network(model, tokenizer)
    text = masked_text(tokens, loaded, masking)
    chunks = Chunks(block_size, blocks["pooling"])
    chosen = _variants(network, text, chunks, blocks, projection, centroids, seed)
    table = masked_lm_blocks.evaluate_blocks(network, control, text, chunks, chosen, masking["batch_size"])
    table.insert(0, "seed", seed)
    write_table(output, table)


def time_blocks(
    model: Model,
    tokenizer: Tokenizer,
    tokens: Tokens,
    projection: Projections,
    centroids: Centroids,
    block_size: BlockSize,
    blocks: Blocks,
    masking: Masking,
    repeats: Annotated[int, typer.Option(help="rounds, of which the median is taken")],
    seed: Seed,
    output: Output,
) -> None:
    """Seconds per sequence of predicting blocks of one size, of attending to them, and of the whole model."""
    import torch

    from replication.masked_lm import blocks as masked_lm_blocks
    from replication.storage import hardware, write_table
    from sparselib.blocks.chunks import Chunks

    network, control, loaded = load_network(model, tokenizer)
    text = masked_text(tokens, loaded, masking)
    chunks = Chunks(block_size, blocks["pooling"])
    chosen = _variants(network, text, chunks, blocks, projection, centroids, seed)
    inputs = text.inputs[: masking["batch_size"]]
    table = masked_lm_blocks.time_blocks(network, control, inputs, chunks, chosen, repeats)
    batch = {"batch_size": inputs.shape[0], "length": inputs.shape[1], "repeats": repeats}
    write_table(output, table.assign(**batch, device=hardware(), threads=torch.get_num_threads()))


def _variants(network, text, chunks, blocks: dict, projection: list[Path], centroids: list[Path], seed: int):
    from replication.graphs import projections
    from replication.graphs.centroids import load
    from replication.masked_lm.blocks import variants

    return variants(
        network,
        text.inputs.shape[1],
        chunks,
        blocks["counts"],
        blocks["clusters"],
        blocks["metric"],
        [projections.load(path) for path in projection],
        [load(path) for path in centroids],
        # Each layer draws its own random blocks, and no two seeds share a draw.
        seed * 1000,
    )
