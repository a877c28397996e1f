"""How long the steps that remain will take: from what those of the same rule took, in this run or the profile's last one."""

import json
import os
import time
from collections import Counter
from pathlib import Path

#: Share of the work that has to be done before a prediction follows this run and not the last one.
LITTLE = 0.02


class Expected:
    """Seconds by rule, and from them the minutes that a run still takes.

    ``root`` is the folder of the workflow: ``.snakemake/seconds`` is where every profile's last run left its own, and
    ``workflow/seconds`` has those of profiles that are shipped. One profile's seconds say nothing of another's.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.profile = root, ""
        self.seconds: dict[str, float] = {}
        self.waiting, self.took = Counter(), {}
        self.work = self.worked = 0.0
        self.start = time.monotonic()

    def of(self, profile: str) -> None:
        """The run is one of this profile."""
        self.profile, self.seconds = profile, {}
        for path in (self.root / "workflow" / "seconds" / f"{profile}.json", self._kept()):
            try:
                self.seconds |= json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):  # there was no run, or it was cut off
                pass

    def begin(self, counts: Counter) -> None:
        """A run of so many jobs of each rule."""
        self.waiting, self.start = Counter(counts), time.monotonic()
        self.work, self.worked = self._of(counts), 0.0

    def ended(self, rule: str, seconds: float) -> None:
        """A job has ended; if its rule never ran before, the others of it are expected to take as long."""
        self.waiting[rule] -= 1
        self.seconds.setdefault(rule, seconds)
        self.worked += self._of({rule: 1})
        self.took.setdefault(rule, []).append(seconds)

    def left(self) -> str:
        """In words: minutes, as this run goes, or on two cores as long as it has only begun; nothing, if a rule never ran."""
        waiting = {rule: count for rule, count in self.waiting.items() if count > 0}
        if not waiting.keys() <= self.seconds.keys():
            return ""
        elapsed = time.monotonic() - self.start
        begun = self.worked > LITTLE * self.work and elapsed > 1
        seconds = self._of(waiting) * (elapsed / self.worked if begun else 1 / min(2, os.cpu_count() or 1))
        minutes = round(seconds / 60)
        return f"about {minutes} min left" if minutes > 1 else "about a minute left"

    def keep(self) -> None:
        """Leave to the profile's next run what this one has taken."""
        if self.took:
            means = {rule: round(sum(found) / len(found), 1) for rule, found in self.took.items()}
            self._kept().parent.mkdir(parents=True, exist_ok=True)
            temporary = self._kept().with_suffix(".partial")
            text = json.dumps(self.seconds | means, indent=1, sort_keys=True)
            temporary.write_text(f"{text}\n", encoding="utf-8")
            os.replace(temporary, self._kept())

    def _kept(self) -> Path:
        return self.root / ".snakemake" / "seconds" / f"{self.profile}.json"

    def _of(self, counts: dict[str, int]) -> float:
        return sum(self.seconds.get(rule, 0.0) * count for rule, count in counts.items())
