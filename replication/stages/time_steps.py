"""Training steps of character models, timed."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Output, Text


def time_steps(
    text: Text,
    model: Annotated[list[Path], typer.Option(help="folder of train-characters; repeat for several models")],
    repeats: Annotated[int, typer.Option(help="steps of each model that are timed, in turn")],
    output: Output,
) -> None:
    """Time training steps of models that were trained alike, one beside the other."""
    import json

    from replication.char_lm.data import read_streams
    from replication.char_lm.models import load_model
    from replication.char_lm.step_time import step_seconds
    from replication.char_lm.training import Recipe
    from replication.files.storage import hardware, write_table

    runs = {folder.parent.name: json.loads((folder / "training.json").read_text()) for folder in model}
    first = next(iter(runs.values()))
    for name, run in runs.items():
        if (run["recipe"], run["rows"]) != (first["recipe"], first["rows"]):
            raise ValueError(f"{name}: trained by another recipe or with other rows than {next(iter(runs))}")
    recipe = Recipe(**first["recipe"])
    _, streams = read_streams(text, {"train": first["rows"]["train"]}, recipe.length)
    loaded = {folder.parent.name: load_model(folder / "model.safetensors")[0] for folder in model}
    write_table(output, step_seconds(loaded, streams["train"], recipe, repeats).assign(device=hardware()))
