"""Weights of models trained anew against those that are shipped."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Checkpoints


def compare_weights(
    checkpoints: Checkpoints,
    results: Annotated[Path, typer.Option(help="folder of a profile's results, with models trained anew")],
) -> None:
    """Say of each shipped model whether the one trained anew has the promised weights: same, other or missing."""
    from replication.files.checkpoints import compare

    found = compare(checkpoints, results)
    for name, verdict in found.items():
        typer.echo(f"{verdict:8}{name}")
    if any(verdict != "same" for verdict in found.values()):
        raise typer.Exit(1)
