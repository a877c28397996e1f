"""The attention graphs of the translator's decoder."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import BatchTokens, Data, Seed, Split, Translator


def extract_decoder(
    model: Translator,
    data: Data,
    split: Split,
    sentences: Annotated[int, typer.Option(help="how many, drawn at random")],
    shortest: Annotated[int, typer.Option(help="only target sentences of more pieces than this")],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for one file of attention graphs per layer")],
    batch_tokens: BatchTokens = 4000,
) -> None:
    """Store the queries and keys of every layer of decoder self-attention."""
    from replication.storage import write_table
    from replication.translation.evaluation import extract_decoder_graphs
    from replication.translation.model import load_translator

    translator = load_translator(model, data)
    text = extract_decoder_graphs(translator, split, sentences, shortest, seed, batch_tokens, output)
    write_table(output / "sentences.parquet", text)
