"""The stage that times a translator with each normaliser."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Data, References, Seed, Source, Target, Words, json_object


def normalizer_speed(
    data: Data,
    source: Source,
    target: Target,
    references: References,
    words: Words,
    settings: Annotated[
        dict, typer.Option(parser=json_object, help="architecture, training, top_k, repeats, beam and batch")
    ],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="table; hardware and versions go into a .json beside it")],
) -> None:
    """Speed of training and decoding, BLEU and attended keys of one model with softmax, top-k, sparsemax and entmax."""
    import tempfile
    from importlib.metadata import version

    from replication.storage import provenance, write_json, write_table
    from replication.translation.speed import measure

    expected = references.read_text(encoding="utf-8").splitlines()
    output.parent.mkdir(parents=True, exist_ok=True)
    # Models of an interrupted run would have been timed under other conditions: each run begins anew.
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".models.") as folder:
        table, details = measure(data, source, target, expected, words, **settings, seed=seed, folder=Path(folder))
    write_table(output, table)
    run = settings | {"pair": f"{source}-{target}", "seed": seed, "entmax": version("entmax")}
    write_json(output.with_suffix(".json"), run | details | provenance())
