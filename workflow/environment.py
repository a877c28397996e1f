"""Checks of the environment that a run starts in, and settings of it that its jobs must not inherit."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from snakemake.logging import logger

from replication.jupyter import kernel_environment

#: Variable that adds a profile of Snakemake's to every run.
PROFILE = "SNAKEMAKE_PROFILE"
#: glibc's settings that let a process keep the memory of its large tensors. By default it gives tensors above 32 MB back, and
#: the system clears the next one page by page, which took a quarter of the time of a sweep.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}
#: Seconds by which the clock of a shared disk may be ahead.
TOLERATED = 5


def check_code(folder: Path) -> None:
    """Exit with an error if jobs would run another checkout's code, as they do in the environment of a copied checkout.

    Parameters
    ----------
    folder : Path
        Root of this checkout.
    """
    # This process finds the code beside the Snakefile, but jobs find what is installed.
    code = "import replication; print(replication.__file__)"
    imported = Path(subprocess.check_output([sys.executable, "-c", code], cwd="/", text=True).strip())
    if not imported.samefile(folder / "replication" / "__init__.py"):
        sys.exit(
            f"error: jobs would run the code of {imported.parents[1]}, but this checkout is {folder}: run `make env` here, and "
            "activate its environment"
        )


def name_foreign_settings() -> None:
    """Warn if the environment adds a profile of Snakemake's to this run."""
    if profile := os.environ.get(PROFILE):
        logger.warning(f"{PROFILE}={profile} adds its settings to this run; unset it to run as documented.")


def dated_in_the_future(paths: Iterable[Path]) -> str:
    """Return what to do about the first file that is newer than now, or an empty string.

    Snakemake would fail the first job that reads it, because the job's results are older.
    """
    now = time.time() + TOLERATED
    for path in paths:
        if (modified := path.stat().st_mtime) > now:
            when = datetime.fromtimestamp(modified).isoformat(" ", "minutes")
            return f"{path} is dated in the future ({when}); set its date to now: touch {shlex.quote(str(path))}"
    return ""


def use_own_environment() -> None:
    """Let jobs run this environment's commands, also if it is not activated, and notebooks its kernels; and keep their memory.

    A user's or another environment's kernel can have the same name.
    """
    own = KEEP_MEMORY | kernel_environment()
    commands = str(Path(sys.executable).parent)
    if own.get("PATH", "").split(os.pathsep)[0] != commands:
        own["PATH"] = os.pathsep.join(filter(None, [commands, own.get("PATH")]))
    os.environ.clear()
    os.environ.update(own)
