"""A shipped model where its training stage would have left it."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Checkpoints, CodeHash, Run, TrainingText


def weights(
    checkpoints: Checkpoints,
    name: Annotated[str, typer.Option(help="folder of the checkpoint, below --checkpoints")],
    run: Run,
    text: TrainingText,
    code: CodeHash,
    output: Annotated[Path, typer.Option(help="folder for what training would have written")],
) -> None:
    """Unpack a shipped model, if settings, seed and text are those that made it; other code is reported, not refused."""
    from replication.checkpoints import unpack

    for warning in unpack(checkpoints, name, run, text, code, output):
        typer.echo(f"warning: {warning}", err=True)
