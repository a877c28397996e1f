"""The ledger at a glance: numbered claims by paper, what one run says of each, drawn as a small bar, and all runs beside."""

import math
import re

import pandas as pd

from replication.claims.finding import UNTESTED
from replication.claims.runs import known

#: Every verdict in colour: each stands beside its word.
SIGNS = {"holds": "🟢", "fails": "🔴", "undecided": "🟡", "not comparable": "⚪", UNTESTED: ""}
_HALF = 6


def overview(claims: pd.DataFrame, run: pd.DataFrame) -> pd.DataFrame:
    """Return a run's ledger, ready to be read, in the order of ``claims``.

    Parameters
    ----------
    claims : DataFrame
        ``config/published/claims.csv``.
    run : DataFrame
        A ledger of :func:`replication.claims.runs.ledgers`.

    Returns
    -------
    DataFrame
        A row per claim: ``number, id, paper, statement, kind, notebook``; ``needed``, what the effect has to be, and
        ``measure``; ``verdict``; ``effect`` with unit and interval; ``n``, the sparsities compared and what the interval varies
        over; ``premise``, the conditions not met; ``change``, what would change the verdict; ``data``; ``place``
        (:func:`places`).
    """
    table = known(claims, run)
    rows = claims[["id", "paper", "statement", "kind", "notebook"]].assign(
        number=range(1, len(claims) + 1),
        measure=claims["effect"],
        needed=[needed(row) for _, row in claims.iterrows()],
        verdict=table["verdict"].to_numpy(),
        n=[over(row) for row in table.itertuples()],
        change=table["change"].to_numpy(),
        data=table["data"].to_numpy(),
        premise=["; ".join(unmet(text)) for text in table["premise"].fillna("")],
    )
    judged = list(zip(claims.itertuples(), table.itertuples(), strict=True))
    rows["effect"] = ["" if row.verdict == UNTESTED else effect(row, claim.unit) for claim, row in judged]
    rows["place"] = [places(row, claim.relation, claim.threshold) for claim, row in judged]
    return rows


def over(row: object) -> str:
    """Return the sparsities that were compared, and what the interval varies over."""
    return "; ".join(filter(None, [row.where, row.n]))


def needed(row: pd.Series) -> str:
    """Return what the effect has to be for a claim to hold."""
    sign = {"<=": "at most", ">=": "at least"}[row["relation"]]
    return f"{sign} {float(row['threshold']):g} {row['unit']}".strip()


def unmet(premise: str) -> list[str]:
    """The parts of a premise whose number, in brackets, is on the wrong side."""
    parts = re.findall(r"((\w+) (>=|<=) ([\d.e+-]+) \(([\d.e+-]+)[^)]*\))", premise)
    return [
        whole
        for whole, _, relation, bound, found in parts
        if not (float(found) >= float(bound) if relation == ">=" else float(found) <= float(bound))
    ]


def ends(interval: str) -> list[float]:
    """The two ends of an interval as ledgers write it; none where there is none."""
    return [float(end) for end in interval.split(" to ") if end]


def effect(row: object, unit: str = "") -> str:
    """An effect, its unit, and its interval in brackets."""
    interval = " to ".join(f"{end:.3g}" for end in ends(row.interval))
    return " ".join(filter(None, [f"{float(row.effect):.3g}", unit, f"({interval})" if interval else ""]))


def places(row: object, relation: str, threshold: float) -> tuple[float, float, float] | None:
    """Where the interval begins, the effect lies and the interval ends, from -1 to 1: 0 is the threshold, above it the claim
    holds. None for what was not tested.
    """
    if row.verdict == UNTESTED:
        return None
    value = float(row.effect)
    low, high = ends(row.interval) or (value, value)
    sign = 1 if relation == ">=" else -1
    found = [sign * (number - threshold) for number in (low, value, high)]
    scale = max(map(abs, found)) or 1.0
    first, middle, last = (number / scale for number in found)
    return min(first, last), middle, max(first, last)


def bar(place: tuple[float, float, float] | None) -> str:
    """The same in letters, of equal width: the interval, the effect in it, and the threshold in the middle.

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
    """A table per paper: the run ``shown`` in full, the others by verdict and effect; claims link to their notebooks."""
    table = overview(claims, runs[shown])
    cells = pd.DataFrame(
        {
            "#": table["number"],
            "claim": [f"[{row.statement}]({row.notebook}.ipynb)" for row in table.itertuples()],
            "the effect has to be": [f"{row.needed}: {row.measure}" for row in table.itertuples()],
            shown: [
                f"{SIGNS[row.verdict]} {row.verdict}" + (" (demonstration)" if demonstrates(row) else "")
                for row in table.itertuples()
            ],
            "effect (95 %)": table["effect"],
            "for it is right": [f"`{bar(place)}`" if place else "" for place in table["place"]],
            "over": table["n"],
            "premise not met": table["premise"],
        }
    )
    for name, run in runs.items():
        if name != shown:
            cells[name] = [brief(row) for row in known(claims, run).itertuples()]
    papers = claims["paper"].to_numpy()
    parts = [f"## {paper}\n\n" + cells[papers == paper].to_markdown(index=False, disable_numparse=True)
             for paper in dict.fromkeys(papers)]  # fmt: skip
    return "\n\n".join(parts)


def demonstrates(row: object) -> bool:
    """Whether a verdict comes from generated text or pictures, and so is no evidence."""
    return row.data == "generated" and row.verdict != UNTESTED


def brief(row: object) -> str:
    """Verdict and effect in a cell of many."""
    return "" if row.verdict == UNTESTED else f"{SIGNS[row.verdict]} {row.verdict} {float(row.effect):.3g}"
