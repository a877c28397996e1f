"""Times of calls on a GPU, launched from Python and replayed from a CUDA graph, with the memory that they take."""

from collections.abc import Callable

import torch

#: Calls that take longer are timed once more instead of many times, and not replayed: the host's time is then negligible.
LONG_MILLISECONDS = 50


def timed(run: Callable, captured: bool = True) -> dict:
    """Return milliseconds from Python and replayed, and megabytes, or the error of a call that fails."""
    row = {"milliseconds": None, "replayed": None, "megabytes": None}
    try:
        run()  # compiles, and allocates persistent memory
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        row["megabytes"] = (torch.cuda.max_memory_allocated() - before) / 2**20
        row["milliseconds"] = median_milliseconds(run)
        if captured and row["milliseconds"] <= LONG_MILLISECONDS:
            row["replayed"] = replayed_milliseconds(run)
    except Exception as error:  # A failing baseline must not stop the other measurements.
        row["error"] = first_line(error)
    return row


def first_line(error: Exception) -> str:
    """Return an error's name and the first line of its message; other lines may hold paths of the machine."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def median_milliseconds(function: Callable) -> float:
    """Return the median time of a call from Python, or the time of the second call if calls are long."""
    from triton.testing import do_bench

    function()  # starts libraries
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    function()
    end.record()
    end.synchronize()
    if start.elapsed_time(end) > LONG_MILLISECONDS:
        return start.elapsed_time(end)
    return do_bench(function, warmup=20, rep=60, return_mode="median")


def replayed_milliseconds(function: Callable) -> float:
    """Return the median time of a call replayed from a CUDA graph."""
    from triton.testing import do_bench_cudagraph

    return do_bench_cudagraph(function, rep=10, return_mode="median")
