"""What a job asks of a cluster: memory, minutes, GPUs.

``resources.csv`` has a row per rule. ``mem_mb`` and ``minutes`` are what the jobs of the demo took at most, on two cores of an
AMD EPYC (benchmarks/workflow_time.py); twice that is asked for. ``paper_mem_mb`` and ``paper_minutes`` are for
config/paper.yaml: trainings and evaluations from what benchmarks/paper_cost.py counts, others guessed from texts' sizes.
"""

import csv
import math
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("resources.csv")
#: Times what was measured: other machines are slower, and other texts longer.
SPARE = 2


@cache
def _table() -> dict[str, dict[str, str]]:
    with open(TABLE, encoding="utf-8", newline="") as file:
        return {row["rule"]: row for row in csv.DictReader(file)}


def resources_of(rule: str, scale: str, gpus: int) -> dict[str, int]:
    """Resources of a rule, as Snakemake names them: ``mem_mb``, ``runtime`` in minutes, ``gpu``.

    Parameters
    ----------
    scale
        ``laptop`` for sizes like the demo's, ``paper`` for the papers'.
    gpus
        How many a training may have; what evaluates has one of them at most.

    Raises
    ------
    KeyError
        If the table has no such rule.
    """
    row = _table()[rule]
    prefix = "paper_" if scale == "paper" else ""
    asked = {
        "mem_mb": SPARE * int(row[f"{prefix}mem_mb"]),
        "runtime": max(5, math.ceil(SPARE * float(row[f"{prefix}minutes"]))),
    }
    return asked | {"gpu": min(gpus, {"none": 0, "one": 1, "all": gpus}[row["gpu"]])}
