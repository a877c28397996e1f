"""Seconds and bytes of one attention."""

import multiprocessing
import re
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from replication.timing.contenders import Attend, Predict, Problem, contender

#: Tokens of the run before memory is measured, which brings code and work space of the libraries into memory.
SMALL = 64


def run(attend: Attend, inputs: list[Tensor], backward: bool) -> None:
    """Run a forward pass, and a backward one if asked for; the gradient from above is 1."""
    if not backward:
        with torch.no_grad():
            attend(*inputs)
        return
    output = attend(*inputs)
    torch.autograd.grad(output, inputs, torch.ones_like(output))


def median_seconds(runs: dict[object, Callable[[], None]], repeats: int, device: str) -> dict[object, float]:
    """Median of the :func:`repeated_seconds` of each run."""
    return {name: median(found) for name, found in repeated_seconds(runs, repeats, device).items()}


def repeated_seconds(runs: dict[object, Callable[[], None]], repeats: int, device: str) -> dict[object, list[float]]:
    """Times of each run, after one that does not count; in turn, so that a disturbance hits all alike."""
    times: dict[object, list[float]] = {name: [] for name in runs}
    for _ in range(1 + repeats):
        for name, one in runs.items():
            _synchronise(device)
            start = time.perf_counter()
            one()
            _synchronise(device)
            times[name].append(time.perf_counter() - start)
    return {name: found[1:] for name, found in times.items()}


def _synchronise(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def peak_bytes(name: str, problem: Problem, backward: bool, predict: Predict | None = None) -> float:
    """Growth of the peak memory over one run, inputs not included.

    On a GPU, of what is allocated there. On a CPU, of the resident memory of a process of its own (NaN where the system is not
    Linux): ``predict`` has to be picklable then.
    """
    if problem.device != "cpu":
        attend, inputs = _prepared(name, problem, predict), problem.inputs()
        run(attend, inputs, backward)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run(attend, inputs, backward)
        return torch.cuda.max_memory_allocated() - before
    # The server has the libraries loaded and no threads; each process forked from it is fresh.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [__name__, "torch.fx.experimental.symbolic_shapes"]
    )  # autograd imports the latter late
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        return executor.submit(_resident_growth, name, problem, backward, predict, torch.get_num_threads()).result()


def _resident_growth(name: str, problem: Problem, backward: bool, predict: Predict | None, threads: int) -> float:
    if not Path("/proc/self/clear_refs").exists():
        return float("nan")
    torch.set_num_threads(threads)
    small = replace(problem, length=min(SMALL, problem.length), density=1.0)
    run(_prepared(name, small, predict), small.inputs(), backward)
    attend, inputs = _prepared(name, problem, predict), problem.inputs()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is resident
    before = _status("VmRSS")
    run(attend, inputs, backward)
    return float(_status("VmHWM") - before)


def _status(key: str) -> int:
    return 1024 * int(re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def _prepared(name: str, problem: Problem, predict: Predict | None) -> Attend:
    return contender(name, problem) if predict is None else lambda q, k, v: predict(q, k)
