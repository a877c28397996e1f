"""Comparisons behind a verdict, read from the words of a ledger's row."""

import re
from dataclasses import dataclass

import pandas as pd

from replication.claims.finding import UNTESTED, Effect
from replication.claims.overview import ends
from replication.claims.rule import Rule

_NUMBER = r"-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf)"
#: Such as ``window - bigbird at 3.3 % of the pairs (2 x gold): 5.63 (4.99 to 6.28)``.
_COMPARISON = re.compile(rf"(?P<what>.+): (?P<effect>{_NUMBER})(?: \((?P<low>{_NUMBER}) to (?P<high>{_NUMBER})\))?")


@dataclass(frozen=True)
class Comparison:
    """One comparison of a claim in one run.

    Attributes
    ----------
    what : str
        Compared methods, and the budget.
    effect : float
        In the claim's unit.
    interval : tuple of float or None
        95 % confidence interval.
    verdict : str
        Verdict of this comparison alone, by its own interval; empty without an interval.
    decides : bool
        Whether the run's verdict is that of this comparison.
    """

    what: str
    effect: float
    interval: tuple[float, float] | None
    verdict: str
    decides: bool = False


def comparisons(row: pd.Series) -> tuple[list[Comparison], list[str]]:
    """Return the comparisons of a ledger's row, the deciding one first, and the other words about it.

    Parameters
    ----------
    row : Series
        Row of :func:`replication.tables.claims.ledger`.
    """
    rule, found, words = Rule(row["relation"], float(row["threshold"])), [], row["numbers"].split("; ")
    if row["verdict"] != UNTESTED and row["effect"] != "":
        what = f"{words.pop(0)}{' at ' + row['where'] if row['where'] else ''}"
        found.append(_compared(rule, what, float(row["effect"]), tuple(ends(row["interval"])) or None, True))
    notes = []
    for text in words:
        if match := _COMPARISON.fullmatch(text):
            interval = (float(match["low"]), float(match["high"])) if match["low"] else None
            found.append(_compared(rule, match["what"], float(match["effect"]), interval))
        else:
            notes.append(text)
    return found, notes


def _compared(
    rule: Rule, what: str, value: float, interval: tuple[float, float] | None, decides: bool = False
) -> Comparison:
    verdict = rule.verdict(Effect(what, value, interval, "")) if interval else ""
    return Comparison(what, value, interval, verdict, decides)
