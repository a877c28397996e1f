"""The stage that times a translator with each normaliser."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Data, References, Words, json_object


def normalizer_speed(
    data: Data,
    models: Annotated[Path, typer.Option(help="folder of train-normalizers")],
    references: References,
    words: Words,
    settings: Annotated[dict, typer.Option(parser=json_object, help="repeats, beam and batch")],
    output: Annotated[
        Path,
        typer.Option(
            help="table; beside it sentences.parquet, what BLEU adds up, and hardware and versions in a .json"
        ),
    ],
) -> None:
    """Speed of training and decoding, BLEU and attended keys of one model with softmax, top-k, sparsemax and entmax."""
    from importlib.metadata import version

    from replication.files.storage import provenance, write_json, write_table
    from replication.translation.speed import measure

    expected = references.read_text(encoding="utf-8").splitlines()
    table, sentences, details = measure(data, expected, words, **settings, models=models)
    write_table(output.with_name("sentences.parquet"), sentences)
    write_table(output, table)
    write_json(output.with_suffix(".json"), settings | {"entmax": version("entmax")} | details | provenance())
