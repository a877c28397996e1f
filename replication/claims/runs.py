"""Ledgers of all runs, for side-by-side comparison."""

import re
from collections import Counter
from pathlib import Path

import pandas as pd

from replication.claims.finding import UNTESTED
from replication.claims.stability import counted
from replication.config.grids import COMPARED
from replication.files.errors import FormatError
from replication.files.verification import inputs

#: Name of the run with the papers' own tables.
PAPERS = "papers"


def ledgers(root: Path, profile: str) -> dict[str, pd.DataFrame]:
    """Return the ledgers of a profile's results and of all stored runs, by name, the papers' own last.

    Each ledger must be the one that its run's manifest lists. The profile's results, if there are any, replace the stored run
    of the same name.
    """
    current = root / "results" / profile / "claims.csv"
    reported = {path.parent.name: path for path in sorted((root / "reported").glob("*/claims.csv"))}
    paths = {profile: current} if current.exists() else {}
    paths |= {name: reported[name] for name in sorted(reported, key=PAPERS.__eq__) if name not in paths}
    inputs(*paths.values())
    return {name: _read(path) for name, path in paths.items()}


def _read(path: Path) -> pd.DataFrame:
    ledger = pd.read_csv(path, keep_default_na=False)
    if missing := {"id", "verdict", "effect", "interval"} - {*ledger}:
        raise FormatError(f"{path}: must have a column {min(missing)}, got {', '.join(ledger)}")
    if twice := ledger["id"][ledger["id"].duplicated()].tolist():
        raise FormatError(f"{path}: must have each claim once, got {twice[0]} twice")
    return ledger


def known(claims: pd.DataFrame, run: pd.DataFrame) -> pd.DataFrame:
    """Return a run's ledger in the order of the claims; claims newer than the run, or judged by another rule, are untested."""
    table = run.set_index("id").reindex(claims["id"]).reset_index()
    if "stability" not in table:  # ledgers before 2026-11-28
        table["stability"] = ""
    table = table.fillna(
        {"verdict": UNTESTED, "interval": ""}
        | {name: "" for name in table if name not in ("verdict", "interval", "effect")}
    )
    return _up_to_date(claims, table) if {"criterion", "budgets", "premise"} <= {*table} else table


def _up_to_date(claims: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return a ledger with the claims as untested that it judged by another criterion, budgets or premise than today's."""
    stated = claims.set_index("id")
    changed = [row.verdict != UNTESTED and _rule(row) != _stated_rule(stated.loc[row.id]) for row in table.itertuples()]
    untested = {"verdict": UNTESTED, "stability": "", "interval": "", "where": "", "n": "", "change": ""}
    return table.assign(**{name: table[name].mask(changed, value) for name, value in untested.items()}).assign(
        numbers=table["numbers"].mask(changed, "judged by an earlier rule; run it again")
    )


def _rule(row: object) -> tuple[str, str, str]:
    """Return criterion, budgets and premise of a ledger's row, without the measured numbers in brackets."""
    premise = re.sub(r" \([^)]*\)", "", row.premise)
    return row.criterion, row.budgets, premise.replace("; ", " & ")


def _stated_rule(claim: pd.Series) -> tuple[str, str, str]:
    criterion = f"{claim['effect']} {claim['relation']} {claim['threshold']:g} {claim['unit']}".strip()
    return criterion, claim["budgets"], claim["premise"]


def counts(runs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the number of findings on the papers' claims per run and verdict, those on generated data in a separate column.

    A verdict that changes with a choice of ours counts as undecided.
    """
    numbers = {}
    for name, run in runs.items():
        found = run[(run["kind"] == "finding") & ~run["id"].str.startswith(COMPARED)]
        generated = (found["data"] == "generated") & (found["verdict"] != UNTESTED)
        counting = [counted(row.verdict, row.stability) for row in found[~generated].itertuples()]
        numbers[name] = Counter(counting) | {"demonstration": generated.sum()}
    return pd.DataFrame(numbers).fillna(0).astype(int).T
