"""The efficient, block-based Sparsefinder (section 6.1), evaluated."""

from replication.stages.block_variants import variants_of
from replication.stages.loading import load_network, masked_text
from replication.stages.options import (
    Blocks,
    BlockSize,
    Centroids,
    Losses,
    Masking,
    Model,
    Output,
    Projections,
    Seed,
    Tokenizer,
    Tokens,
)


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
    losses: Losses,
) -> None:
    """Perplexity when every layer visits predicted, random or all blocks of one size."""
    from replication.masked_lm import blocks as masked_lm_blocks
    from replication.storage import write_table
    from sparselib.blocks.chunks import Chunks

    network, control, loaded = load_network(model, tokenizer)
    text = masked_text(tokens, loaded, masking)
    chunks = Chunks(block_size, blocks["pooling"])
    chosen = variants_of(network, text, chunks, blocks, projection, centroids, seed)
    table, of_sequences = masked_lm_blocks.evaluate_blocks(
        network, control, text, chunks, chosen, masking["batch_size"]
    )
    table.insert(0, "seed", seed)
    of_sequences.insert(0, "seed", seed)
    write_table(losses, of_sequences)
    write_table(output, table)
