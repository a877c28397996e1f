"""The papers' claims as ``claims.csv`` states them."""

import math

import pandas as pd

#: Columns without which a claim cannot be judged.
NEEDED = (
    "id",
    "paper",
    "section",
    "statement",
    "kind",
    "effect",
    "relation",
    "threshold",
    "unit",
    "budgets",
    "premise",
)
RELATIONS = ("<=", ">=")


def check_claims(claims: pd.DataFrame, name: str = "`claims`") -> None:
    """Check that each claim is stated once, with a relation and a threshold.

    Parameters
    ----------
    claims : DataFrame
        ``config/published/claims.csv``.
    name : str
        Name of the table, for the error.

    Raises
    ------
    ValueError
        If a column is missing, a claim occurs twice, or a relation or threshold is none; the error names the claim.
    """
    if missing := [column for column in NEEDED if column not in claims]:
        raise ValueError(f"{name} must have a column {missing[0]}, got {', '.join(claims.columns)}")
    if twice := claims["id"][claims["id"].duplicated()].tolist():
        raise ValueError(f"{name} must have each claim once, got {twice[0]} twice; remove one of its rows")
    for row in claims.to_dict("records"):
        if row["relation"] not in RELATIONS:
            raise ValueError(f"{name} relation of {row['id']} must be {' or '.join(RELATIONS)}, got {row['relation']}")
        if not (isinstance(row["threshold"], int | float) and math.isfinite(row["threshold"])):
            raise ValueError(f"{name} threshold of {row['id']} must be a finite number, got {row['threshold']}")
