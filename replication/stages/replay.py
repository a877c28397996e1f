"""The stage that makes again what an archive has."""

from pathlib import Path
from typing import Annotated

import typer


def replay(
    archive: Annotated[Path, typer.Option(help="file of `make archive`")],
    output: Annotated[Path, typer.Option(help="folder to unpack into, which is not there yet")],
    cores: Annotated[int, typer.Option(help="notebooks that run beside each other")] = 1,
) -> None:
    """Judge the claims and draw the tables and figures of an archive again, and compare; exit status 1 if one differs."""
    from replication.archives.replay import replay as again

    differing = again(archive, output, cores, typer.echo)
    for name in differing:
        typer.secho(f"differs: {name}", fg="red", err=True)
    if differing:
        raise typer.Exit(1)
    typer.echo(f"{archive}: the ledger, every table and every figure are what they were")
