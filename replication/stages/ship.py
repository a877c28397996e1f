"""A trained model as a checkpoint to ship."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Checkpoints, CodeHash, Run, TrainingText


def ship(
    model: Annotated[Path, typer.Option(help="folder of a training stage")],
    run: Run,
    text: TrainingText,
    code: CodeHash,
    checkpoints: Checkpoints,
    name: Annotated[str, typer.Option(help="folder of the checkpoint, below --checkpoints")],
    beside: Annotated[list[str], typer.Option(help="further files of the training stage, such as training.csv")] = [],  # noqa: B006
    measured: Annotated[list[Path], typer.Option(help="CSV of what was measured with the model")] = [],  # noqa: B006
) -> None:
    """Store a model's weights in half precision, with what made them, and list their hash in weights.csv."""
    from replication.files.checkpoints import ship

    typer.echo(f"{ship(model, checkpoints, name, run, text, code, beside, measured)}  {name}")
