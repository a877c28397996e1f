"""What models of characters achieve on the test text."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Text


def measure_characters(
    text: Text,
    model: Annotated[list[Path], typer.Option(help="folder of train-characters; repeat for several models")],
) -> None:
    """Evaluate character models on the test text; measured.csv and segments.parquet go into the folder of each."""
    import json

    import pandas as pd

    from replication.char_lm.data import read_streams
    from replication.char_lm.evaluation import evaluate
    from replication.char_lm.models import load_model
    from replication.files.storage import write_table

    for folder in model:
        run, (loaded, known) = (
            json.loads((folder / "training.json").read_text()),
            load_model(folder / "model.safetensors"),
        )
        length = run["recipe"]["length"]
        alphabet, streams = read_streams(text, {"test": run["rows"]["test"]}, length)
        if alphabet != known:
            raise ValueError(f"{text}: its characters are not those that {folder} was trained with")
        measured = evaluate(loaded, streams["test"], length)
        row = {
            "architecture": run["settings"]["architecture"],
            "top_k": run["settings"]["top_k"],
            "memory_length": loaded.memory_length,
            "parameters": sum(parameter.numel() for parameter in loaded.parameters()),
            "characters": streams["test"].characters(),
            "bits_per_character": measured.bits_per_character,
            "attended_positions": measured.attended_positions,
            **loaded.measurements(),
            "training_seconds": run["train_runtime"],
            "device": run["hardware"],
        }
        write_table(folder / "segments.parquet", measured.segments)
        write_table(folder / "measured.csv", pd.DataFrame([row]), may_be_empty=["top_k", "training_seconds"])
