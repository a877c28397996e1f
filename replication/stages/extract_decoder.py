"""The attention graphs of the translator's decoder."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import BatchTokens, Data, Seed, Splits, Translator, paired


def extract_decoder(
    model: Translator,
    data: Data,
    split: Splits,
    sentences: Annotated[list[int], typer.Option(help="how many, drawn at random; one number per split")],
    shortest: Annotated[int, typer.Option(help="only target sentences of more pieces than this")],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for <split>/, one file of attention graphs per layer in each")],
    batch_tokens: BatchTokens = 4000,
) -> None:
    """Store the queries and keys of every layer of decoder self-attention."""
    from replication.files.storage import write_table
    from replication.translation.evaluation import extract_decoder_graphs
    from replication.translation.model import load_translator

    chosen = paired(split=split, sentences=sentences)
    translator = load_translator(model, data)
    for name, count in chosen:
        folder = output / name
        text = extract_decoder_graphs(translator, name, count, shortest, seed, batch_tokens, folder)
        write_table(folder / "sentences.parquet", text)
