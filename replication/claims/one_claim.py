"""One claim in full: its rule with the source of each part, its verdict in every run, and all numbers behind it."""

from collections import Counter

import pandas as pd

from replication.claims.finding import UNTESTED
from replication.claims.overview import SIGNS, demonstrates, effect, needed, over, unmet
from replication.claims.runs import PAPERS, known


def one_claim(claims: pd.DataFrame, runs: dict[str, pd.DataFrame], number: int) -> str:
    """Return one claim in Markdown.

    Parameters
    ----------
    claims : DataFrame
        ``config/published/claims.csv``.
    runs : dict of str to DataFrame
        Ledgers of :func:`replication.claims.runs.ledgers`.
    number : int
        Number of the claim in :func:`replication.claims.overview.markdown`, from 1.

    Returns
    -------
    str
        The statement and its rule; a table of the runs that tested it; and a folded list per run with every comparison.

    Raises
    ------
    ValueError
        If there is no claim of that number.
    """
    if isinstance(number, str) and number.isascii() and number.isdigit():
        number = int(number)  # papermill -r gives texts
    if not isinstance(number, int) or not 1 <= number <= len(claims):
        raise ValueError(f"`claim` must be a number from 1 to {len(claims)}, got {number!r}")
    stated = claims.iloc[number - 1]
    rows = pd.concat([known(claims, run).iloc[[number - 1]].assign(run=name) for name, run in runs.items()])
    tested = list(rows[rows["verdict"] != UNTESTED].itertuples())
    section = f", section {stated['section']}" if stated["section"] else ""
    rule = {
        "the effect": f"{stated['effect']}, {needed(stated)}",
        "threshold from": stated["threshold_source"],
        "budgets": f"{stated['budgets']} ({stated['budgets_reason']})" if stated["budgets"] else "",
        "premise": stated["premise"],
    }
    counts = Counter(row.verdict for row in tested if row.run != PAPERS and not demonstrates(row))
    together = ", ".join(f"{verdict} in {count}" for verdict, count in counts.items())
    verdicts = pd.DataFrame([_cells(row) for row in tested]).to_markdown(index=False, disable_numparse=True)
    return "\n\n".join(
        [
            f"**{number}. {stated['statement']}** ({stated['paper']}{section}; `{stated['id']}`)",
            "\n".join(f"- {name}: {text}" for name, text in rule.items() if text),
            f"Runs on real data: {together or 'none tested it'}.",
            verdicts,
            *(_numbers(row) for row in tested),
        ]
    )


def _cells(row: object) -> dict[str, str]:
    return {
        "run": row.run,
        "verdict": f"{SIGNS[row.verdict]} {row.verdict}" + (" (demonstration)" if demonstrates(row) else ""),
        "stability": row.stability,
        "effect (95 %)": effect(row),
        "over": over(row),
        "premise not met": "; ".join(unmet(row.premise)),
        "what would change it": row.change,
    }


def _numbers(row: object) -> str:
    """Return a run's comparisons, of which the first one decided, as a folded list."""
    listed = "\n".join(f"- {part}" for part in row.numbers.split("; "))
    return f"<details><summary>{row.run}: every comparison, the deciding one first</summary>\n\n{listed}\n\n</details>"
