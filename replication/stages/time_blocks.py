"""The efficient, block-based Sparsefinder (section 6.1), timed."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.block_variants import variants_of
from replication.stages.loading import load_network, masked_text
from replication.stages.options import Blocks, BlockSizes, BlockStudents, Masking, Model, Seed, Tokenizer, Tokens


def time_blocks(
    model: Model,
    tokenizer: Tokenizer,
    tokens: Tokens,
    students: BlockStudents,
    block_size: BlockSizes,
    blocks: Blocks,
    masking: Masking,
    repeats: Annotated[int, typer.Option(help="rounds, of which the median is taken")],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for size<z>/timed.csv")],
) -> None:
    """Seconds per sequence of predicting blocks of every size, of attending to them, and of the whole model."""
    import torch

    from replication.files.storage import hardware, write_table
    from replication.masked_lm import blocks as masked_lm_blocks
    from sparselib.blocks.chunks import Chunks

    network, control, loaded = load_network(model, tokenizer)
    text = masked_text(tokens, loaded, masking)
    inputs = text.inputs[: masking["batch_size"]]
    batch = {"batch_size": inputs.shape[0], "length": inputs.shape[1], "repeats": repeats}
    for size in block_size:
        chunks = Chunks(size, blocks["pooling"])
        chosen = variants_of(network, text, chunks, blocks, students, seed)
        table = masked_lm_blocks.time_blocks(network, control, inputs, chunks, chosen, repeats)
        table = table.assign(**batch, device=hardware(), threads=torch.get_num_threads())
        write_table(output / f"size{size}" / "timed.csv", table)
