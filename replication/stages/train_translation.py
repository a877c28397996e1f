"""The translator, trained with fairseq."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Architecture, Data, Processes, Seed, Source, Target, Training


def train_translation(
    data: Data,
    source: Source,
    target: Target,
    architecture: Architecture,
    training: Training,
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for the model and its training log")],
    initial: Annotated[
        Path | None, typer.Option(help="a model.safetensors with the same dictionary to start from")
    ] = None,
    processes: Processes = 1,
) -> None:
    """Train a translator, from random weights or from another model; goes on where an interrupted run stopped."""
    import time

    from replication.training import is_first, start

    start(processes)
    from replication.files.storage import provenance, write_json, write_table
    from replication.translation.training import FIXED, train

    began = time.perf_counter()
    log = train(data, source, target, architecture, training, seed, output, initial)
    if not is_first():
        return
    write_table(output / "training.csv", log)
    summary = {"architecture": architecture, "training": FIXED | training, "seed": seed, "initial": str(initial or "")}
    write_json(output / "training.json", summary | {"train_runtime": time.perf_counter() - began} | provenance())
