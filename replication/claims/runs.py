"""All runs side by side: a row per claim, a column per run."""

from pathlib import Path

import pandas as pd

from replication.claims.finding import UNTESTED

#: What the run of the papers' own tables is called.
PAPERS = "papers"


def ledgers(root: Path, profile: str) -> dict[str, pd.DataFrame]:
    """The ledger of a profile's results, and those of ``reported``, the papers' own numbers last.

    Results stand in for a stored run of the same profile.
    """
    own = root / "results" / profile / "claims.csv"
    reported = {path.parent.name: path for path in sorted((root / "reported").glob("*/claims.csv"))}
    paths = {profile: own} if own.exists() else {}
    paths |= {name: reported[name] for name in sorted(reported, key=PAPERS.__eq__) if name not in paths}
    return {name: pd.read_csv(path, keep_default_na=False) for name, path in paths.items()}


def known(claims: pd.DataFrame, run: pd.DataFrame) -> pd.DataFrame:
    """A run's ledger in the order of the claims; those that it does not know, as an old run may not, are untested."""
    table = run.set_index("id").reindex(claims["id"]).reset_index()
    return table.fillna(
        {"verdict": UNTESTED, "interval": ""}
        | {name: "" for name in ("n", "premise", "where", "change", "data") if name in table}
    )


def counts(runs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return how many claims of each run have which verdict; those on generated data have a column of their own."""
    found = {}
    for name, run in runs.items():
        generated = (run["data"] == "generated") & (run["verdict"] != UNTESTED)
        found[name] = run.loc[~generated, "verdict"].value_counts().to_dict() | {"demonstration": generated.sum()}
    return pd.DataFrame(found).fillna(0).astype(int).T
