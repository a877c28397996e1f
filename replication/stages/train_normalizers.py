"""Translators that differ in their normaliser only."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Architecture, Data, Seed, Source, Target, Training


def train_normalizers(
    data: Data,
    source: Source,
    target: Target,
    architecture: Architecture,
    training: Training,
    top_k: Annotated[int, typer.Option(help="keys that top-k attention keeps")],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for the models, <implementation>/<normaliser>")],
) -> None:
    """Train the same translator, from the same seed, with softmax, top-k, sparsemax and entmax."""
    import time

    from replication.files.storage import provenance, write_json, write_table
    from replication.translation.contenders import CONTENDERS
    from replication.translation.training import FIXED, train
    from sparselib.checks import at_least

    at_least("top_k", top_k, 1)
    for contender in CONTENDERS:
        folder, settings = contender.folder(output), training | contender.options(top_k)
        start = time.perf_counter()
        log = train(data, source, target, architecture, settings, seed, folder)
        write_table(folder / "training.csv", log)
        summary = {"architecture": architecture, "training": FIXED | settings, "seed": seed}
        write_json(folder / "training.json", summary | {"train_runtime": time.perf_counter() - start} | provenance())
