"""The stage that tests the papers' claims."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Output


def claims(
    published: Annotated[
        Path,
        typer.Option(help="CSV of all claims: kind, rule, threshold, band and premise, each with its source"),
    ],
    results: Annotated[Path, typer.Option(help="folder of a run's results, with a folder per task and config.yaml")],
    output: Output,
) -> None:
    """Test what the papers claim on what was measured."""
    import pandas as pd

    from replication.claims import ledger
    from replication.files.storage import write_table

    write_table(output, ledger(pd.read_csv(published), results), may_be_empty=["effect"])
