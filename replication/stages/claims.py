"""The stage that tests the papers' claims."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Output


def claims(
    published: Annotated[Path, typer.Option(help="CSV: id, section, statement, value, tolerance, notebook")],
    results: Annotated[Path, typer.Option(help="folder of a profile's results, with a folder per task")],
    output: Output,
    at_paper_scale: Annotated[bool, typer.Option("--at-paper-scale", help="compare with printed numbers too")] = False,
) -> None:
    """Test what the papers claim on what was measured."""
    import pandas as pd

    from replication.claims import ledger
    from replication.storage import write_table

    write_table(output, ledger(pd.read_csv(published), results, at_paper_scale))
