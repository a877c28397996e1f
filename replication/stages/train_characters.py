"""A model of characters."""

from collections.abc import Callable
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
    output: Annotated[Path, typer.Option(help="folder for the model and its log")],
) -> None:
    """Train a character model; goes on where an interrupted run stopped."""
    import time

    from replication.char_lm.data import read_streams
    from replication.char_lm.models import build_model
    from replication.char_lm.training import Recipe, checkpoint_of, train
    from replication.files.storage import provenance, write_json, write_table

    settings = {"top_k": None} | settings
    plan = _made("recipe", Recipe, **recipe)
    alphabet, streams = read_streams(text, rows, plan.length)
    _made("settings", build_model, settings, len(alphabet), seed)
    goes_on = checkpoint_of(output).exists()
    start = time.perf_counter()
    _, log = train(settings, alphabet, streams["train"], streams["valid"], plan, seed, output)
    # What an interrupted run took before it stopped is not known.
    seconds = None if goes_on else time.perf_counter() - start
    write_table(output / "log.csv", log)
    summary = {"settings": settings, "recipe": recipe, "rows": rows, "seed": seed, "train_runtime": seconds}
    write_json(output / "training.json", summary | provenance())


def _made(option: str, function: Callable, *args, **kwargs) -> object:
    """What a function makes of an option's keys. Raises ``ValueError`` if one is missing or misspelt."""
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        raise ValueError(f"--{option}: {str(error).rpartition('() ')[2]}") from None
