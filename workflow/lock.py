"""Snakemake locks its folder while it runs, and a run that is killed leaves its lock behind.

Every run holds a shared lock of the operating system, which ends with its process, however that ends. If nobody else holds one,
Snakemake's lock is a dead run's. Its jobs may outlive it, so they hold another: who comes next waits for them, and does not
write beside them. With the profile's ``rerun-incomplete``, the next run then goes on by itself.
"""

import fcntl
import sys
from pathlib import Path
from typing import TextIO

#: Before the command of every job: it holds the lock of those at work until its last process ends.
AT_WORK = "set -euo pipefail; exec 9>>.snakemake/working; if command -v flock > /dev/null; then flock --shared 9; fi; "


def without_the_locks_of_the_dead(state: Path) -> TextIO:
    """Remove Snakemake's locks in its folder ``state`` if no run is alive there, and say so; a sign of life to keep open."""
    state.mkdir(exist_ok=True)
    alive = open(state / "alive", "w")
    try:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass  # Snakemake itself says whether two can run side by side.
    else:
        if left := list((state / "locks").glob("*")):
            _wait_for_jobs(state / "working")
            for lock in left:
                lock.unlink()
            print("An earlier run was killed; its lock is removed, and this one goes on.", file=sys.stderr)
    fcntl.flock(alive, fcntl.LOCK_SH)
    return alive


def _wait_for_jobs(path: Path) -> None:
    with open(path, "a") as working:
        try:
            fcntl.flock(working, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(
                "An earlier run was killed, and some of its jobs are still at work: waiting for them.", file=sys.stderr
            )
            fcntl.flock(working, fcntl.LOCK_EX)
