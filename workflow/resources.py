"""Resources that jobs request on a cluster: memory, minutes, GPUs.

``resources.csv`` has a row per rule. ``mem_mb`` and ``minutes`` are the largest values measured in the demo, on two cores of an
AMD EPYC (benchmarks/workflow_time.py); jobs request twice as much. ``paper_mem_mb`` and ``paper_minutes`` are for
config/paper.yaml. Those of trainings and evaluations follow from benchmarks/paper_cost.py, the others are guesses.
"""

import csv
import math
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("resources.csv")
#: Safety factor on the measured values: other machines are slower, and other texts longer.
SPARE = 2


@cache
def _table() -> dict[str, dict[str, str]]:
    with open(TABLE, encoding="utf-8", newline="") as file:
        return {row["rule"]: row for row in csv.DictReader(file)}


def resources_of(rule: str, scale: str, gpus: int) -> dict[str, int]:
    """Return a rule's resources by Snakemake's names: ``mem_mb``, ``runtime`` in minutes, ``gpu``.

    Parameters
    ----------
    scale : str
        ``laptop`` for sizes like the demo's, ``paper`` for the papers'.
    gpus : int
        Number of GPUs for a training; evaluations get one at most.

    Raises
    ------
    KeyError
        If the table has no such rule.
    """
    row = _table()[rule]
    prefix = "paper_" if scale == "paper" else ""
    requested = {
        "mem_mb": SPARE * int(row[f"{prefix}mem_mb"]),
        "runtime": max(5, math.ceil(SPARE * float(row[f"{prefix}minutes"]))),
    }
    return requested | {"gpu": min(gpus, {"none": 0, "one": 1, "all": gpus}[row["gpu"]])}
