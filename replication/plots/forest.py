"""Forest plot of the ledger: each claim's effects and intervals, run by run, on either side of its threshold."""

import re
import textwrap

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
#: Letters of a claim, and of its regimes, in one line.
LETTERS, REGIME_LETTERS = 66, 40
#: Height of a row at most, and of a page's rows together, in inches.
ROW, PAGE = 0.19, 8.4


def forest(claims: pd.DataFrame) -> Figure:
    """Draw a row per claim, with a point and a 95 % interval for each run.

    Parameters
    ----------
    claims : DataFrame
        A row per claim and run, those of a claim in succession: ``statement``, ``paper``, ``regime``, ``verdict``,
        ``stability``, ``effect``, ``interval`` (such as ``1 to 2``, or empty), ``relation`` and ``threshold``.

    Notes
    -----
    Claims have different units, so each row has a scale of its own: its largest distance from the threshold has the same width
    in all rows. The right side is where the claim holds.
    """
    statements = list(dict.fromkeys(claims["statement"]))
    papers = list(dict.fromkeys(claims["paper"]))
    rows = len(statements) + len(papers)
    figure, axes = plt.subplots(figsize=(TEXT, min(ROW * rows, PAGE) + 0.9))
    place, ticks, labels, regimes = 0, [], [], []
    for paper in papers:
        axes.text(
            -0.02,
            place,
            paper,
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            weight="bold",
            fontsize=6.5,
        )
        place += 1
        of_paper = claims[claims["paper"] == paper]
        for statement, runs in of_paper.groupby("statement", sort=False):
            _draw_claim(axes, place, runs)
            ticks.append(place)
            labels.append(textwrap.shorten(statement, LETTERS, placeholder=" ..."))
            regimes.append(", ".join(dict.fromkeys(runs["regime"])))
            place += 1
    for tick, text in zip(ticks, regimes, strict=True):
        shown = textwrap.shorten(text, REGIME_LETTERS, placeholder=" ...")
        axes.text(1.02, tick, shown, transform=axes.get_yaxis_transform(), va="center", fontsize=5.5, color="dimgrey")
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(
        xlim=(-1.08, 1.08), ylim=(place - 0.4, -0.6), xticks=[-0.5, 0.5], xticklabels=["against the claim", "for it"]
    )
    axes.set_yticks(ticks, labels, fontsize=5.5)
    axes.tick_params(length=0)
    for side in ("left", "top", "right"):
        axes.spines[side].set_visible(False)
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
