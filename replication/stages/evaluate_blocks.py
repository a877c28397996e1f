"""The efficient, block-based Sparsefinder (section 6.1), evaluated."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.block_variants import variants_of
from replication.stages.loading import load_network, masked_text
from replication.stages.options import Blocks, BlockSizes, BlockStudents, Masking, Model, Seeds, Tokenizer, Tokens


def evaluate_blocks(
    model: Model,
    tokenizer: Tokenizer,
    tokens: Tokens,
    students: BlockStudents,
    block_size: BlockSizes,
    blocks: Blocks,
    masking: Masking,
    seed: Seeds,
    output: Annotated[Path, typer.Option(help="folder for size<z>/evaluated/seed<n>.csv, and losses_seed<n>.parquet")],
) -> None:
    """Perplexity when every layer visits predicted, random or all blocks, of every size and from every seed."""
    from itertools import product

    from replication.files.storage import write_table
    from replication.masked_lm import blocks as masked_lm_blocks
    from sparselib.blocks.chunks import Chunks

    network, control, loaded = load_network(model, tokenizer)
    text = masked_text(tokens, loaded, masking)
    for size, one in product(block_size, seed):
        chunks = Chunks(size, blocks["pooling"])
        chosen = variants_of(network, text, chunks, blocks, students, one)
        table, losses = masked_lm_blocks.evaluate_blocks(network, control, text, chunks, chosen, masking["batch_size"])
        folder = output / f"size{size}" / "evaluated"
        for columns in (table, losses):
            columns.insert(0, "seed", one)
        write_table(folder / f"losses_seed{one}.parquet", losses)
        write_table(folder / f"seed{one}.csv", table)
