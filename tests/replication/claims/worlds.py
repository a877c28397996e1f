"""Made-up results: the tables of a workflow, written where the ledger reads them, and what it then says of the claims."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import yaml

from replication.claims import judge, ledger
from replication.files.paths import ROOT
from replication.results.settings import as_columns

#: All that is claimed, whatever the task.
ALL_CLAIMS = pd.read_csv(ROOT / "config/published/claims.csv", keep_default_na=False)
CLAIMS = ALL_CLAIMS.set_index("id")


def write_world(folder: Path, tables: Mapping[str, pd.DataFrame | dict]) -> None:
    """Write tables, each under its path below the folder of results; its suffix says how. A dict is the configuration."""
    for name, table in tables.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if "setting" in table and "method" in table:
            table = as_columns(table)
        if isinstance(table, dict):
            path.write_text(yaml.safe_dump(table))
        elif path.suffix == ".parquet":
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False)


def judged_alone(folder: Path, tables: Mapping[str, pd.DataFrame | dict], claim: str) -> dict[str, object]:
    """Write a world, and judge one claim by it."""
    write_world(folder, tables)
    return judge(ALL_CLAIMS[ALL_CLAIMS["id"] == claim].iloc[0].to_dict(), folder)


def judged(folder: Path, tables: Mapping[str, pd.DataFrame | dict], printed: bool = False) -> pd.DataFrame:
    """Write a world, and judge it: the rows of the ledger by the claims' ids."""
    write_world(folder, tables)
    return ledger(ALL_CLAIMS, folder, printed).set_index("id")
