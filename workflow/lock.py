"""Locks of runs: one run per profile, and removal of the lock that a killed Snakemake run leaves behind.

Every run also holds a shared lock of the operating system, which is released when its process ends, even if it is killed. If no
process holds that lock, Snakemake's own lock is stale. Jobs may outlive a killed run, so they hold a second lock, and the next
run waits until it is free. With the profile's ``rerun-incomplete``, the next run then continues without ``--unlock``.

Two runs of different profiles can share a checkout. The first that ends removes all of Snakemake's locks, those of the other
run too. A run therefore also holds an exclusive lock of its profile.
"""

import fcntl
import sys
from pathlib import Path
from typing import TextIO

#: Prefix of every job's command: holds the job lock until the job's last process ends.
JOB_PREFIX = (
    "set -euo pipefail; exec 9>>.snakemake/working; if command -v flock > /dev/null; then flock --shared 9; fi; "
)


def remove_stale_locks(state: Path) -> TextIO:
    """Remove Snakemake's locks if no run is active, and return this run's lock file.

    Parameters
    ----------
    state : Path
        Snakemake's folder, ``.snakemake``.

    Returns
    -------
    TextIO
        Keep it open during the run: closing it releases the lock.
    """
    state.mkdir(exist_ok=True)
    run_lock = open(state / "alive", "w")
    try:
        fcntl.flock(run_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass  # Another run is active; Snakemake's own lock decides whether both may run.
    else:
        if stale := list((state / "locks").glob("*")):
            _wait_for_jobs(state / "working")
            for lock in stale:
                lock.unlink()
            print("Removed the lock of an earlier run, which was killed.", file=sys.stderr)
    fcntl.flock(run_lock, fcntl.LOCK_SH)
    return run_lock


def hold_profile(state: Path, profile: str) -> TextIO:
    """Return the lock file of a profile's run; keep it open during the run.

    Raises
    ------
    BlockingIOError
        If another run of the profile is active.
    """
    lock = open(state / f"alive-{profile}", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise BlockingIOError(
            f"profile {profile}: another run of it is active in this folder; wait until it ends, or end it"
        ) from None
    return lock


def _wait_for_jobs(path: Path) -> None:
    with open(path, "a") as working:
        try:
            fcntl.flock(working, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for the jobs of an earlier run, which was killed.", file=sys.stderr)
            fcntl.flock(working, fcntl.LOCK_EX)
