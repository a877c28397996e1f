"""The stage that writes a run's page."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Output


def report(
    results: Annotated[
        Path, typer.Option(help="folder of a run below results/, with claims.csv, figures and notebooks")
    ],
    output: Output,
) -> None:
    """Write a page about a run: verdicts, claims, figures and settings in one file."""
    from replication.files.paths import ROOT
    from replication.files.storage import replacing
    from replication.report import page

    with replacing(output) as temporary:
        temporary.write_text(page(ROOT, results.name), encoding="utf-8")
