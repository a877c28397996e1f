"""Shipped models where their training stage would have left them."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Checkpoints, CodeHash, TrainingText, json_object


def weights(
    checkpoints: Checkpoints,
    model: Annotated[
        list[dict],
        typer.Option(
            parser=json_object,
            help='{"name": folder of the checkpoint below --checkpoints, "run": its settings and seed}, repeated for every '
            "model that was trained on the text",
        ),
    ],
    text: TrainingText,
    code: CodeHash,
    output: Annotated[Path, typer.Option(help="folder of results, for the folders of the models")],
) -> None:
    """Unpack shipped models, if settings, seed and text are those that made them; other code is reported, not refused."""
    from replication.files.checkpoints import unpack

    for one in model:
        for warning in unpack(checkpoints, one["name"], one["run"], text, code, output / one["name"]):
            typer.echo(f"warning: {warning}", err=True)
