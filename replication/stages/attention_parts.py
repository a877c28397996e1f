"""Where dense heads look, in terms of factorised patterns."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Output, Text


def attention_parts(
    text: Text,
    model: Annotated[list[Path], typer.Option(help="folder of train-characters; repeat for models of several seeds")],
    stride: Annotated[int, typer.Option(help="positions of a row")],
    output: Output,
) -> None:
    """How much of every head's attention lies on its row and on its column, on the test text."""
    import json

    import pandas as pd

    from replication.char_lm.data import read_streams
    from replication.char_lm.models import load_model
    from replication.char_lm.parts import attention_in_parts
    from replication.files.storage import write_table

    tables = []
    for folder in model:
        run = json.loads((folder / "training.json").read_text())
        length = run["recipe"]["length"]
        _, streams = read_streams(text, {"test": run["rows"]["test"]}, length)
        loaded, _ = load_model(folder / "model.safetensors")
        table = attention_in_parts(loaded, streams["test"], length, stride)
        table.insert(0, "seed", run["seed"])
        tables.append(table)
    write_table(output, pd.concat(tables, ignore_index=True))
