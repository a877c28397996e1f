"""A model of characters."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Seed, Text, json_object


def train_characters(
    text: Text,
    settings: Annotated[
        dict, typer.Option(parser=json_object, help="architecture, top_k, and the architecture's sizes")
    ],
    recipe: Annotated[dict, typer.Option(parser=json_object, help="arguments of char_lm.training.Recipe")],
    rows: Annotated[
        dict, typer.Option(parser=json_object, help='streams read side by side: {"train", "valid", "test"}')
    ],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for the model, its log, and what it measures on the test text")],
) -> None:
    """Train a character model, and evaluate it; goes on where an interrupted run stopped."""
    import time

    import pandas as pd

    from replication.char_lm.data import read_streams
    from replication.char_lm.evaluation import evaluate
    from replication.char_lm.training import Recipe, checkpoint_of, train
    from replication.storage import hardware, provenance, write_json, write_table

    settings, plan = {"top_k": None} | settings, Recipe(**recipe)
    alphabet, streams = read_streams(text, rows, plan.length)
    goes_on = checkpoint_of(output).exists()
    start = time.perf_counter()
    model, log = train(settings, alphabet, streams["train"], streams["valid"], plan, seed, output)
    # What an interrupted run took before it stopped is not known.
    seconds = None if goes_on else time.perf_counter() - start
    measured = evaluate(model, streams["test"], plan.length)
    row = {
        "architecture": settings["architecture"],
        "top_k": settings["top_k"],
        "memory_length": model.memory_length,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "characters": streams["test"].characters(),
        "bits_per_character": measured.bits_per_character,
        "attended_positions": measured.attended_positions,
        **model.measurements(),
        "training_seconds": seconds,
        "device": hardware(),
    }
    write_table(output / "log.csv", log)
    write_table(output / "segments.parquet", measured.segments)
    write_table(output / "measured.csv", pd.DataFrame([row]))
    summary = {"settings": settings, "recipe": recipe, "rows": rows, "seed": seed, "train_runtime": seconds}
    write_json(output / "training.json", summary | provenance())
