"""Durations of the default run's steps, from the last run that was stored."""

import json

from replication.files.paths import ROOT
from replication.tables.markers import markdown

#: Number of steps shown.
LONGEST = 10


def longest() -> str:
    """Return the longest steps, with the mean seconds of a job."""
    seconds = json.loads((ROOT / "workflow/seconds/demo.json").read_text(encoding="utf-8"))
    seconds.pop("archive", None)  # not a step of the run
    slowest = sorted(seconds, key=seconds.get, reverse=True)[:LONGEST]
    return markdown(["step", "seconds per job"], [[f"`{step}`", f"{seconds[step]:.0f}"] for step in slowest])
