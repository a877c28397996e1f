"""Summary printed at the end of a run: verdict counts and the paths of the results."""

import csv
from collections import Counter
from pathlib import Path

from replication.config.grids import COMPARED


def ending(results: Path, since: float) -> str:
    """Return the summary of a run whose report is newer than ``since``, or an empty string.

    Parameters
    ----------
    results : Path
        Folder of the run's results.
    since : float
        Start of the run, in seconds since the epoch.
    """
    page, ledger = results / "report.html", results / "claims.csv"
    if not page.exists() or page.stat().st_mtime < since:
        return ""
    with open(ledger, encoding="utf-8", newline="") as file:
        every = list(csv.DictReader(file))
    own = [row for row in every if row["id"].startswith(COMPARED)]
    rows = [row for row in every if row not in own]
    counts = Counter(row["verdict"] for row in rows)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    if generated := sum(row["data"] == "generated" and row["verdict"] != "untested" for row in rows):
        verdicts += f"; {generated} on generated pictures, a demonstration"
    places = {
        "report": page,
        "figures": f"{results}/figures/",
        "notebooks": f"{results}/notebooks/ (make lab)",
        "claims": ledger,
    }
    compared = [
        f"{row['statement']}: {row['verdict']}" + (f", {row['effect']} ({row['interval']})" if row["effect"] else "")
        for row in own
    ]
    return "\n".join(
        [
            f"\n{counts.total()} claims: {verdicts}",
            *compared,
            *(f"{name:<10} {place}" for name, place in places.items()),
        ]
    )
