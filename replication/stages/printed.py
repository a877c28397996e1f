"""The stage that tests the papers' claims on the papers' own tables."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Output


def printed(
    published: Annotated[Path, typer.Option(help="folder of the printed tables and of claims.csv")], output: Output
) -> None:
    """Judge the papers' printed numbers by the rules that judge measured ones."""
    import tempfile

    import pandas as pd

    from replication.claims.printed import ledger_of_papers
    from replication.files.storage import write_table

    with tempfile.TemporaryDirectory() as folder:
        table = ledger_of_papers(pd.read_csv(published / "claims.csv"), published, Path(folder))
    write_table(output, table, may_be_empty=["effect"])
