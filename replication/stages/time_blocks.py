"""The efficient, block-based Sparsefinder (section 6.1), timed."""

from typing import Annotated

import typer

from replication.stages.block_variants import variants_of
from replication.stages.loading import load_network, masked_text
from replication.stages.options import (
    Blocks,
    BlockSize,
    Centroids,
    Masking,
    Model,
    Output,
    Projections,
    Seed,
    Tokenizer,
    Tokens,
)


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
    chosen = variants_of(network, text, chunks, blocks, projection, centroids, seed)
    inputs = text.inputs[: masking["batch_size"]]
    table = masked_lm_blocks.time_blocks(network, control, inputs, chunks, chosen, repeats)
    batch = {"batch_size": inputs.shape[0], "length": inputs.shape[1], "repeats": repeats}
    write_table(output, table.assign(**batch, device=hardware(), threads=torch.get_num_threads()))
