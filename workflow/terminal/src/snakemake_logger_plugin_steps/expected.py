"""Estimates of the time left, from the durations of each rule's jobs in this run or in the profile's last run."""

import json
import os
import time
from collections import Counter
from pathlib import Path

#: Share of the work after which estimates follow this run's speed instead of the last run's.
ENOUGH = 0.02


class Expected:
    """Seconds per rule, and the time that a run still needs.

    Durations are kept per profile. ``.snakemake/seconds`` contains those of each profile's last run on this machine, and
    ``workflow/seconds`` those that come with the repository.

    Parameters
    ----------
    root : Path
        Folder of the repository.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.profile = root, ""
        self.seconds: dict[str, float] = {}
        self.waiting, self.took = Counter(), {}
        self.work = self.worked = 0.0
        self.start = time.monotonic()

    def read(self, profile: str) -> None:
        """Read the durations of a profile's last run."""
        self.profile, self.seconds = profile, {}
        for path in (self.root / "workflow" / "seconds" / f"{profile}.json", self._path()):
            try:
                self.seconds |= json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):  # no earlier run, or it was killed while writing
                pass

    def begin(self, counts: Counter) -> None:
        """Start a run, given the number of jobs per rule."""
        self.waiting, self.start = Counter(counts), time.monotonic()
        self.work, self.worked = self._total(counts), 0.0

    def ended(self, rule: str, seconds: float) -> None:
        """Record the duration of a finished job; it is also the estimate for the rule's other jobs if the rule is new."""
        self.waiting[rule] -= 1
        self.seconds.setdefault(rule, seconds)
        self.worked += self._total({rule: 1})
        self.took.setdefault(rule, []).append(seconds)

    def left(self) -> str:
        """Return the time left in words, or an empty string if a pending rule has never run.

        Until enough work is done to extrapolate this run's speed, two cores are assumed.
        """
        waiting = {rule: count for rule, count in self.waiting.items() if count > 0}
        if not waiting.keys() <= self.seconds.keys():
            return ""
        elapsed = time.monotonic() - self.start
        begun = self.worked > ENOUGH * self.work and elapsed > 1
        seconds = self._total(waiting) * (elapsed / self.worked if begun else 1 / min(2, os.cpu_count() or 1))
        minutes = round(seconds / 60)
        return f"about {minutes} min left" if minutes > 1 else "about a minute left"

    def write(self) -> None:
        """Write the mean duration per rule for the profile's next run."""
        if self.took:
            means = {rule: round(sum(seconds) / len(seconds), 1) for rule, seconds in self.took.items()}
            self._path().parent.mkdir(parents=True, exist_ok=True)
            temporary = self._path().with_suffix(".partial")
            text = json.dumps(self.seconds | means, indent=1, sort_keys=True)
            temporary.write_text(f"{text}\n", encoding="utf-8")
            os.replace(temporary, self._path())

    def _path(self) -> Path:
        return self.root / ".snakemake" / "seconds" / f"{self.profile}.json"

    def _total(self, counts: dict[str, int]) -> float:
        return sum(self.seconds.get(rule, 0.0) * count for rule, count in counts.items())
