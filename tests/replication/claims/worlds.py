"""Made-up results: the tables of a workflow, written where the ledger reads them, and what it then says of the claims."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from replication.claims import ledger
from replication.paths import ROOT

#: All that is claimed, whatever the task.
ALL_CLAIMS = pd.read_csv(ROOT / "config/published/claims.csv")


def write_world(folder: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write tables, each under its path below the folder of results; its suffix says how."""
    for name, table in tables.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table.to_parquet(path, index=False) if path.suffix == ".parquet" else table.to_csv(path, index=False)


def judged(
    folder: Path, tables: Mapping[str, pd.DataFrame], claims: Iterable[str], at_paper_scale: bool = False
) -> pd.DataFrame:
    """Write a world, and judge it: the rows of the ledger for these claims, by their id."""
    write_world(folder, tables)
    return ledger(ALL_CLAIMS, folder, at_paper_scale).set_index("id").loc[list(claims)]
