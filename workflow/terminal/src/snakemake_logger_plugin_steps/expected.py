"""Estimates of the time left, from the durations of each rule's jobs in this run or in the profile's last run."""

import json
import os
import time
from collections import Counter
from pathlib import Path

#: Share of the work after which estimates follow this run's speed instead of the last run's.
ENOUGH = 0.02

#: Profile whose durations are guesses for a profile that has never run.
DEFAULT = "demo"


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
        #: Rules whose seconds are another profile's.
        self.guessed: set[str] = set()
        self.begun, self.waiting, self.took = Counter(), Counter(), {}
        self.start = time.monotonic()

    def read(self, profile: str) -> None:
        """Read the durations of a profile's last run; rules that it lacks get those of the default profile."""
        self.profile = profile
        own = _read(self._shipped(profile)) | _read(self._path())
        self.seconds = _read(self._shipped(DEFAULT)) | own
        self.guessed = self.seconds.keys() - own.keys()

    def begin(self, counts: Counter) -> None:
        """Start a run, given the number of jobs per rule."""
        self.begun, self.waiting, self.start = Counter(counts), Counter(counts), time.monotonic()

    def ended(self, rule: str, seconds: float) -> None:
        """Record the duration of a finished job; it is also the estimate for new rules of the same kind."""
        self.waiting[rule] -= 1
        for other in {rule, *self.begun}:
            if _kind(other) == _kind(rule) and (other not in self.seconds or other in self.guessed):
                self.seconds[other] = seconds
                self.guessed.discard(other)
        self.took.setdefault(rule, []).append(seconds)

    def left(self) -> str:
        """Return the time left in words; empty if no pending rule has ever run, and a lower bound if some have not.

        Until enough work is done to extrapolate this run's speed, two cores are assumed.
        """
        waiting = {rule: count for rule, count in self.waiting.items() if count > 0}
        if not waiting.keys() & self.seconds.keys():
            return ""
        elapsed = time.monotonic() - self.start
        work, worked = self._total(self.begun), self._total(self.begun - self.waiting)
        begun = worked > ENOUGH * work and elapsed > 1
        seconds = self._total(waiting) * (elapsed / worked if begun else 1 / min(2, os.cpu_count() or 1))
        minutes = round(seconds / 60)
        kind = "about" if waiting.keys() <= self.seconds.keys() - self.guessed else "at least about"
        return f"{kind} {minutes} min left" if minutes > 1 else f"{kind} a minute left"

    def write(self) -> None:
        """Write the mean duration per rule for the profile's next run."""
        if self.took:
            means = {rule: round(sum(seconds) / len(seconds), 1) for rule, seconds in self.took.items()}
            self._path().parent.mkdir(parents=True, exist_ok=True)
            temporary = self._path().with_suffix(".partial")
            text = json.dumps(self.seconds | means, indent=1, sort_keys=True)
            temporary.write_text(f"{text}\n", encoding="utf-8")
            os.replace(temporary, self._path())

    def _shipped(self, profile: str) -> Path:
        return self.root / "workflow" / "seconds" / f"{profile}.json"

    def _path(self) -> Path:
        return self.root / ".snakemake" / "seconds" / f"{self.profile}.json"

    def _total(self, counts: dict[str, int]) -> float:
        return sum(self.seconds.get(rule, 0.0) * count for rule, count in counts.items())


def _kind(rule: str) -> str:
    """Return the command of a rule's step: every place and model has a rule of its own."""
    return rule.partition("__")[0]


def _read(path: Path) -> dict[str, float]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no earlier run, or it was killed while writing
        return {}
