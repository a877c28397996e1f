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


def side_by_side(claims: pd.DataFrame, runs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Verdict and effect of every claim in every run, empty where it is untested; the claim links to its notebook."""
    linked = [f"[{row.statement}]({row.notebook}.ipynb)" for row in claims.itertuples()]
    table = pd.DataFrame({"paper": claims["paper"], "claim": linked}).set_index(claims["id"])
    for name, run in runs.items():
        # A stored run may be older than a claim.
        known = run.set_index("id").reindex(claims["id"]).fillna({"verdict": UNTESTED})
        table[name] = [_cell(row) for row in known.itertuples()]
    return table


def counts(runs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """How many claims of each run have which verdict."""
    found = pd.DataFrame({name: run["verdict"].value_counts() for name, run in runs.items()})
    return found.fillna(0).astype(int).T


def _cell(row) -> str:
    return "" if row.verdict == UNTESTED else f"{row.verdict} ({float(row.effect):.3g})"
