"""Forest plot of the ledger: each claim's effects and intervals, run by run, on either side of its threshold."""

import re
import textwrap
from itertools import chain

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from replication.plots.style import TEXT
from replication.predictors.methods import GREEN, GREY, VERMILLION, YELLOW

#: Colour and marker of each verdict, by its word in ledgers.
STYLES = {
    "holds": (GREEN, "^"),
    "fails": (VERMILLION, "v"),
    "depends on the budget": (YELLOW, "D"),
    "undecided": (GREY, "o"),
}
#: Letters of a claim in one line, height of a line in inches, and size of type.
LETTERS, LINE, SIZE = 48, 0.125, 6


def forest(claims: pd.DataFrame) -> Figure:
    """Draw a line per claim, with a point and a 95 % interval for each run, in two columns.

    Parameters
    ----------
    claims : DataFrame
        A row per claim and run, those of a claim in succession: ``statement``, ``paper``, ``verdict``, ``stability``,
        ``effect``, ``interval`` (such as ``1 to 2``, or empty), ``relation`` and ``threshold``.

    Notes
    -----
    Claims have different units, so each line has a scale of its own: its largest distance from the threshold has the same width
    in all lines. The right side is where the claim holds.
    """
    columns = _columns(claims)
    lines = max(map(len, columns))
    figure, both = plt.subplots(1, 2, figsize=(TEXT, LINE * lines + 0.55))
    for axes, column in zip(both, columns, strict=True):
        _draw_column(axes, column)
        axes.set(xlim=(-1.08, 1.08), ylim=(lines - 0.4, -0.6))
    handles = [
        Line2D([], [], color=color, marker=marker, linestyle="", label=verdict)
        for verdict, (color, marker) in STYLES.items()
        if (claims["verdict"] == verdict).any()
    ]
    hollow = Line2D(
        [], [], color="black", marker="o", linestyle="", markerfacecolor="white", label="changes with our choices"
    )
    figure.legend(handles=[*handles, hollow], loc="outside lower center", ncol=len(handles) + 1)
    return figure


def _columns(claims: pd.DataFrame) -> tuple[list, list]:
    """Return the lines of both columns: names of papers, and each claim's rows; papers are not divided."""
    papers = [
        [paper, *(runs for _, runs in rows.groupby("statement", sort=False))]
        for paper, rows in claims.groupby("paper", sort=False)
    ]
    longer = {cut: max(sum(map(len, papers[:cut])), sum(map(len, papers[cut:]))) for cut in range(1, len(papers) + 1)}
    cut = min(longer, key=longer.get)
    return [*chain(*papers[:cut])], [*chain(*papers[cut:])]


def _draw_column(axes: plt.Axes, column: list) -> None:
    ticks, labels = [], []
    for place, line in enumerate(column):
        if isinstance(line, str):
            across = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
            axes.text(-0.02, place, line, weight="bold", fontsize=SIZE + 0.5, **across)
        else:
            _draw_claim(axes, place, line)
            ticks.append(place)
            labels.append(textwrap.shorten(line["statement"].iloc[0], LETTERS, placeholder=" ..."))
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(xticks=[-0.6, 0.5], xticklabels=["against", "for it"])
    axes.set_yticks(ticks, labels, fontsize=SIZE)
    axes.tick_params(length=0)
    for side in ("left", "top", "right"):
        axes.spines[side].set_visible(False)


def _draw_claim(axes: plt.Axes, place: float, rows: pd.DataFrame) -> None:
    """Draw a claim's runs beside one another within its row, in units of the row's largest distance from the threshold."""
    spans = [_from_threshold(row) for row in rows.itertuples()]
    scale = max(abs(value) for span in spans for value in span) or 1.0
    for number, (row, span) in enumerate(zip(rows.itertuples(), spans, strict=True)):
        low, effect, high = (value / scale for value in span)
        color, marker = STYLES[row.verdict]
        offset = place + 0.6 * ((number + 0.5) / len(rows) - 0.5)
        axes.plot([low, high], [offset, offset], color=color, linewidth=0.8, solid_capstyle="butt")
        hollow = row.stability not in ("", "stable")
        axes.plot(effect, offset, marker, color=color, markersize=3.2, markerfacecolor="white" if hollow else color)


def _from_threshold(row: tuple) -> tuple[float, float, float]:
    """Return the interval's ends and the effect between them, measured from the threshold towards where the claim holds."""
    sign = 1 if row.relation.startswith(">") else -1
    ends = re.findall(r"-?[0-9.]+(?:e-?\d+)?", row.interval) or [row.effect, row.effect]
    low, high = sorted(sign * (float(end) - row.threshold) for end in ends)
    return low, sign * (float(row.effect) - row.threshold), high
