"""Seconds and bytes of attention."""

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

#: Tokens of the warm-up before memory is measured, which loads the libraries' code and workspace.
SMALL = 64


def run(attend: Attend, inputs: list[Tensor], backward: bool) -> None:
    """Run a forward pass, and with ``backward`` a backward pass from a gradient of ones."""
    if not backward:
        with torch.no_grad():
            attend(*inputs)
        return
    output = attend(*inputs)
    torch.autograd.grad(output, inputs, torch.ones_like(output))


def median_seconds(runs: dict[object, Callable[[], None]], repeats: int, device: str) -> dict[object, float]:
    """Return the median of each run's :func:`repeated_seconds`."""
    return {name: median(times) for name, times in repeated_seconds(runs, repeats, device).items()}


def repeated_seconds(runs: dict[object, Callable[[], None]], repeats: int, device: str) -> dict[object, list[float]]:
    """Time each run ``repeats`` times after a warm-up, in seconds.

    The runs take turns, so that disturbances of the machine affect all alike.
    """
    times: dict[object, list[float]] = {name: [] for name in runs}
    for _ in range(1 + repeats):
        for name, timed_run in runs.items():
            _synchronise(device)
            start = time.perf_counter()
            timed_run()
            _synchronise(device)
            times[name].append(time.perf_counter() - start)
    return {name: seconds[1:] for name, seconds in times.items()}


def _synchronise(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def peak_bytes(name: str, problem: Problem, backward: bool, predict: Predict | None = None) -> float:
    """Return the growth of peak memory over one run in bytes, without the inputs.

    On a GPU, this is memory allocated there. On a CPU, it is the resident memory of a separate process, or NaN on a system
    other than Linux.

    Parameters
    ----------
    name : str
        An attention of :func:`~replication.timing.contenders.contender`.
    problem : Problem
        Its inputs.
    backward : bool
        Whether the run has a backward pass.
    predict : callable, optional
        Prediction of blocks to measure instead; picklable if on a CPU.
    """
    if problem.device != "cpu":
        attend, inputs = _prepared(name, problem, predict), problem.inputs()
        run(attend, inputs, backward)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run(attend, inputs, backward)
        return torch.cuda.max_memory_allocated() - before
    # The fork server has the libraries loaded and no threads, so each process that it forks is fresh.
    context = multiprocessing.get_context("forkserver")
    # Autograd imports the second module only when it runs.
    context.set_forkserver_preload([__name__, "torch.fx.experimental.symbolic_shapes"])
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        return executor.submit(_resident_growth, name, problem, backward, predict, torch.get_num_threads()).result()


def _resident_growth(name: str, problem: Problem, backward: bool, predict: Predict | None, threads: int) -> float:
    if not Path("/proc/self/clear_refs").exists():
        return float("nan")
    torch.set_num_threads(threads)
    small = replace(problem, length=min(SMALL, problem.length), density=1.0)
    run(_prepared(name, small, predict), small.inputs(), backward)
    attend, inputs = _prepared(name, problem, predict), problem.inputs()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the resident memory
    before = _status("VmRSS")
    run(attend, inputs, backward)
    return float(_status("VmHWM") - before)


def _status(key: str) -> int:
    return 1024 * int(re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def _prepared(name: str, problem: Problem, predict: Predict | None) -> Attend:
    return contender(name, problem) if predict is None else lambda q, k, v: predict(q, k)
