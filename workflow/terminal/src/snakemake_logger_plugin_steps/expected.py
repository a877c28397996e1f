"""How long the steps that remain will take: from what those of the same rule took, in this run or the last one."""

import csv
import json
import os
import time
from collections import Counter
from pathlib import Path

#: Of a rule that neither the last run nor the table of resources knows, in seconds.
UNKNOWN = 10.0
#: Share of the work that has to be done before a prediction follows this run and not the last one.
LITTLE = 0.02


class Expected:
    """Seconds by rule, and from them the minutes that a run still takes.

    ``root`` is the folder of the workflow: ``workflow/resources.csv`` has the minutes of a job of each rule, and
    ``.snakemake/seconds.json`` is where the last run left its own.
    """

    def __init__(self, root: Path) -> None:
        self.kept = root / ".snakemake" / "seconds.json"
        self.seconds = _measured(root / "workflow" / "resources.csv")
        try:
            self.seconds |= json.loads(self.kept.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # there was no last run, or it was cut off
            pass
        self.waiting, self.took = Counter(), {}
        self.work = self.worked = 0.0
        self.start = time.monotonic()

    def begin(self, counts: Counter) -> None:
        """A run of so many jobs of each rule."""
        self.waiting, self.start = Counter(counts), time.monotonic()
        self.work, self.worked = sum(self._of(rule) * count for rule, count in counts.items()), 0.0

    def ended(self, rule: str, seconds: float) -> None:
        """A job has ended."""
        self.waiting[rule] -= 1
        self.worked += self._of(rule)
        self.took.setdefault(rule, []).append(seconds)

    def left(self) -> str:
        """In words: minutes, as this run goes, or on two cores as long as it has only begun."""
        remaining = sum(self._of(rule) * max(count, 0) for rule, count in self.waiting.items())
        elapsed = time.monotonic() - self.start
        begun = self.worked > LITTLE * self.work and elapsed > 1
        seconds = remaining * elapsed / self.worked if begun else remaining / min(2, os.cpu_count() or 1)
        minutes = round(seconds / 60)
        return f"about {minutes} min left" if minutes > 1 else "about a minute left"

    def keep(self) -> None:
        """Leave to the next run what this one has taken."""
        if self.took:
            means = {rule: sum(found) / len(found) for rule, found in self.took.items()}
            self.kept.parent.mkdir(exist_ok=True)
            temporary = self.kept.with_suffix(".partial")
            temporary.write_text(json.dumps(self.seconds | means, indent=1), encoding="utf-8")
            os.replace(temporary, self.kept)

    def _of(self, rule: str) -> float:
        return self.seconds.get(rule, UNKNOWN)


def _measured(table: Path) -> dict[str, float]:
    if not table.exists():
        return {}
    with open(table, encoding="utf-8", newline="") as file:
        return {row["rule"]: 60 * float(row["minutes"]) for row in csv.DictReader(file)}
