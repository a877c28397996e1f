"""Overview of the ledger: numbered claims by paper, with one run's results as small bars and the other runs' verdicts."""

import math
import re

import pandas as pd

from replication.claims.finding import UNTESTED
from replication.claims.runs import known
from replication.claims.stability import counted

#: Sign of each verdict, from characters that text fonts have; it is always printed next to the word.
SIGNS = {
    "holds": "✓",
    "fails": "✗",
    "depends on the budget": "≈",
    "undecided": "?",
    "not comparable": "–",
    UNTESTED: "",
}
#: Characters on each side of a bar's centre.
_HALF = 6


def overview(claims: pd.DataFrame, run: pd.DataFrame) -> pd.DataFrame:
    """Return a run's ledger for display, in the order of ``claims``.

    Parameters
    ----------
    claims : DataFrame
        ``config/published/claims.csv``.
    run : DataFrame
        A ledger of :func:`replication.claims.runs.ledgers`.

    Returns
    -------
    DataFrame
        A row per claim: ``number, id, paper, statement, kind, notebook``; ``needed``, the criterion, and ``measure``, the
        effect's name; ``verdict`` and its ``stability``; ``effect`` with unit and interval; ``n``, the compared budget and what
        the interval varies over; ``premise``, the unmet conditions; ``change``, what would change the verdict; ``data``; and
        ``place`` (:func:`places`).
    """
    table = known(claims, run)
    rows = claims[["id", "paper", "statement", "kind", "notebook"]].assign(
        number=range(1, len(claims) + 1),
        measure=claims["effect"],
        needed=[needed(row) for _, row in claims.iterrows()],
        verdict=table["verdict"].to_numpy(),
        stability=table["stability"].to_numpy(),
        n=[over(row) for row in table.itertuples()],
        change=table["change"].to_numpy(),
        data=table["data"].to_numpy(),
        premise=["; ".join(unmet(text)) for text in table["premise"].fillna("")],
    )
    judged = list(zip(claims.itertuples(), table.itertuples(), strict=True))
    rows["effect"] = ["" if row.verdict == UNTESTED else effect(row, claim.unit) for claim, row in judged]
    rows["place"] = [places(row, claim.relation, claim.threshold) for claim, row in judged]
    return rows


def in_abstracts(claims: pd.DataFrame) -> pd.DataFrame:
    """Return the claims of the papers' abstracts: paper by paper, in the order of each abstract's sentences.

    The column ``abstract`` has the number of the claim within its abstract, and the words that state it.
    """
    stated = claims[claims["abstract"] != ""]
    papers = stated["paper"].map({paper: number for number, paper in enumerate(claims["paper"].unique())})
    numbers = stated["abstract"].str.partition(":")[0].astype(int)
    return stated.assign(of_paper=papers, number=numbers).sort_values(["of_paper", "number"])


def over(row: object) -> str:
    """Return the compared budget, and what the interval varies over."""
    return "; ".join(filter(None, [row.where, row.n]))


def needed(row: pd.Series) -> str:
    """Return a claim's criterion in words, such as ``at least 0 points``."""
    sign = {"<=": "at most", ">=": "at least"}[row["relation"]]
    return f"{sign} {float(row['threshold']):g} {row['unit']}".strip()


def unmet(premise: str) -> list[str]:
    """Return the parts of a premise whose measured number, in brackets, does not meet the condition."""
    parts = re.findall(r"((\w+) (>=|<=) ([\d.e+-]+) \(([\d.e+-]+)[^)]*\))", premise)
    return [
        whole
        for whole, _, relation, bound, value in parts
        if not (float(value) >= float(bound) if relation == ">=" else float(value) <= float(bound))
    ]


def ends(interval: str) -> list[float]:
    """Return the two ends of a ledger's interval, or an empty list without an interval."""
    return [float(end) for end in interval.split(" to ") if end]


def effect(row: object, unit: str = "") -> str:
    """Return an effect with its unit, and its interval in brackets."""
    interval = " to ".join(f"{end:.3g}" for end in ends(row.interval))
    return " ".join(filter(None, [f"{float(row.effect):.3g}", unit, f"({interval})" if interval else ""]))


def places(row: object, relation: str, threshold: float) -> tuple[float, float, float] | None:
    """Return the lower end, the effect and the upper end of an interval on a scale from -1 to 1.

    The threshold is at 0, and positive values support the claim. Untested claims give None.
    """
    if row.verdict == UNTESTED:
        return None
    value = float(row.effect)
    low, high = ends(row.interval) or (value, value)
    sign = 1 if relation == ">=" else -1
    distances = [sign * (number - threshold) for number in (low, value, high)]
    scale = max(map(abs, distances)) or 1.0
    first, middle, last = (distance / scale for distance in distances)
    return min(first, last), middle, max(first, last)


def bar(place: tuple[float, float, float] | None) -> str:
    """Return a text bar of fixed width with the interval, the effect, and the threshold in the middle.

    Example
    -------
    >>> bar((0.5, 0.75, 1.0))
    '······│··──●─'
    """
    if place is None:
        return ""
    low, middle, high = (_HALF + round(_HALF * math.copysign(min(abs(x), 1), x)) for x in place)
    signs = ["─" if low <= position <= high else "·" for position in range(2 * _HALF + 1)]
    signs[_HALF] = "│"
    signs[middle] = "●"
    return "".join(signs)


def markdown(claims: pd.DataFrame, runs: dict[str, pd.DataFrame], shown: str) -> str:
    """Return a Markdown table per paper.

    The run ``shown`` has a column. The other runs share a cell per claim, grouped by verdict, so that the table stays narrow
    enough for a page. Claims link to their notebooks.
    """
    table = overview(claims, runs[shown])
    others = [known(claims, run).assign(run=name) for name, run in runs.items() if name != shown]
    by_claim = dict(iter(pd.concat(others).groupby("id"))) if others else {}
    cells = pd.DataFrame(
        {
            "#": table["number"],
            "claim": [f"[{row.statement}]({row.notebook}.ipynb)" for row in table.itertuples()],
            "the effect has to be": [f"{row.needed}: {row.measure}" for row in table.itertuples()],
            shown: [_in_cell(row) for row in table.itertuples()],
            "other runs": [_by_verdict(by_claim.get(name)) for name in claims["id"]],
        }
    )
    papers = claims["paper"].to_numpy()
    parts = [f"## {paper}\n\n" + cells[papers == paper].to_markdown(index=False, disable_numparse=True)
             for paper in dict.fromkeys(papers)]  # fmt: skip
    return "\n\n".join(parts)


def _in_cell(row: object) -> str:
    """Return verdict, effect, bar, what the interval varies over and unmet premises, a line each."""
    verdict = f"{SIGNS[row.verdict]} {row.verdict}" + (" (demonstration)" if demonstrates(row) else "")
    drawn = f"`{bar(row.place)}`" if row.place else ""
    return "<br>".join(filter(None, [verdict, row.stability, row.effect, drawn, row.n, row.premise]))


def _by_verdict(claim: pd.DataFrame | None) -> str:
    """Return the runs that tested a claim, a line per verdict that counts."""
    if claim is None:
        return ""
    lines = []
    counting = claim.assign(counts=[counted(row.verdict, row.stability) for row in claim.itertuples()])
    for verdict, runs in counting[counting["counts"] != UNTESTED].groupby("counts", sort=False):
        named = ", ".join(f"{row.run} {float(row.effect):.3g}" for row in runs.itertuples())
        lines.append(f"{SIGNS[verdict]} {verdict}: {named}")
    return "<br>".join(lines)


def demonstrates(row: object) -> bool:
    """Return whether a verdict comes from generated pictures, and is therefore no evidence."""
    return row.data == "generated" and row.verdict != UNTESTED
