"""Effects and intervals of a claim as small pictures within a page."""

from html import escape

import pandas as pd

from replication.claims.overview import effect, ends
from replication.tables.claims import over

#: Shape of each verdict, in a square from -4 to 4; colours are the page's.
SHAPES = {
    "holds": "M0-4 3.5 3H-3.5Z",
    "fails": "M0 4 3.5-3H-3.5Z",
    "depends on the budget": "M0-4 4 0 0 4-4 0Z",
    "undecided": "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0Z",
}
#: Half of a picture's width, and the height of a run's line.
HALF, LINE = 80, 9


def strip(rows: list[pd.Series]) -> str:
    """Return an SVG with a line per run: its interval, and a marker whose shape and colour are those of the verdict.

    Parameters
    ----------
    rows : list of Series
        Rows of one claim with a verdict (:attr:`replication.pages.judged.Claim.decided`).

    Returns
    -------
    str
        The threshold is in the middle, and values to the right of it support the claim. All lines have the same scale. Hollow
        markers are verdicts that another choice changes.
    """
    spans = [_from_threshold(row) for row in rows]
    scale = max((abs(value) for span in spans for value in span), default=0) or 1.0
    drawn = [_line(row, number, [HALF * value / scale for value in span])
             for number, (row, span) in enumerate(zip(rows, spans, strict=True))]  # fmt: skip
    height = LINE * max(len(rows), 1) + 2
    return (
        f'<svg class="strip" viewBox="{-HALF - 8} 0 {2 * HALF + 16} {height}" width="{2 * HALF + 16}" height="{height}"'
        f' role="img" aria-label="effects of {len(rows)} runs against the threshold">'
        f'<path class="threshold" d="M0 0V{height}"/>{"".join(drawn)}</svg>'
    )


def _line(row: pd.Series, number: int, span: list[float]) -> str:
    low, middle, high = span
    verdict = row["counts_as"]
    hollow = " hollow" if verdict != row["verdict"] else ""
    return (
        f'<g class="{verdict.replace(" ", "-")}{hollow}" data-regime="{escape(row["regime"])}"'
        f' transform="translate(0 {LINE * number + LINE / 2 + 1:g})">'
        f'<path class="interval" d="M{low:.1f} 0H{high:.1f}"/>'
        f'<path class="marker" transform="translate({middle:.1f} 0)" d="{SHAPES[verdict]}"/>'
        f"<title>{escape(in_words(row))}</title></g>"
    )


def in_words(row: pd.Series) -> str:
    """Return a run's verdict, effect, interval, what it varies over and what would change it, a line each."""
    stability = f" ({row['stability']})" if row["stability"] else ""
    change = f"what would change it: {row['change']}" if row["change"] else ""
    lines = [f"{row['run']}: {row['verdict']}{stability}", effect(row, row["unit"]), over(row), change]
    return "\n".join(filter(None, lines))


def _from_threshold(row: pd.Series) -> tuple[float, float, float]:
    """Return the interval's ends and the effect between them, as distances towards where the claim holds."""
    value, sign = float(row["effect"]), 1 if row["relation"] == ">=" else -1
    low, high = ends(row["interval"]) or (value, value)
    distances = [sign * (number - float(row["threshold"])) for number in (low, value, high)]
    return min(distances[0], distances[2]), distances[1], max(distances[0], distances[2])
