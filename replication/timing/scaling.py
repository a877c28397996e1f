"""Growth of attention's time and memory with the sequence length: measurements, fits, and break-even densities."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from replication.timing.clock import peak_bytes, repeated_seconds, run
from replication.timing.contenders import BLOCK_SPARSE, Predict, Problem, contender, peers
from replication.timing.repeats import measurable, summary

FORWARD, BOTH = "forward", "forward+backward"
#: Name of the prediction of blocks in the table.
PREDICTOR = "predictor"
CURVE = ["what", "density", "pass"]


def measure(
    lengths: Sequence[int],
    densities: Sequence[float],
    heads: int,
    dimension: int,
    block: int,
    repeats: int,
    *,
    seed: int,
    device: str,
    predict: Predict | None = None,
) -> pd.DataFrame:
    """Measure time and memory of block-sparse entmax attention and of its peers.

    Parameters
    ----------
    lengths : sequence of int
        Tokens of a sequence.
    densities : sequence of float
        Shares of visited blocks. A density with less than one key block per query block is left out, as is a peer that does
        not fit into memory.
    heads, dimension, block : int
        Sizes of the attention.
    repeats : int
        Runs after the warm-up, whose median and quartiles are reported.
    seed : int
        Seed of the inputs.
    device : str
        Device of the measurement.
    predict : callable, optional
        Prediction from q and k to a :class:`~sparselib.kernels.BlockMask`, which is measured too; picklable if on a CPU.

    Returns
    -------
    DataFrame
        A row for each ``n``, ``density`` (1 for attention without blocks, NaN for the predictor), ``what`` and ``pass``, with
        ``seconds, lower, upper``, ``bytes``, ``device``, ``threads`` and ``torch``.

    Raises
    ------
    ValueError
        If there is no length or density, or a size is below 1.
    """
    if not lengths or not densities or repeats < 1:
        raise ValueError(
            "`lengths` and `densities` must not be empty and `repeats` must be at least 1, "
            f"got {lengths}, {densities} and {repeats}"
        )
    tables = []
    for n in lengths:
        shared = {"heads": heads, "dimension": dimension, "block": block, "seed": seed, "device": device}
        problems = _problems(n, densities, shared)
        tables.append(_measured(problems, repeats, None))
        if predict is not None:
            alone = {(PREDICTOR, float("nan"), FORWARD): Problem(n, 1.0, **shared)}
            tables.append(_measured(alone, repeats, predict))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(device=device, threads=torch.get_num_threads(), torch=torch.__version__)


def _problems(n: int, densities: Sequence[float], shared: dict) -> dict[tuple[str, float, str], Problem]:
    """Return the problems of one length by name, density and pass."""
    dense = Problem(n, 1.0, **shared)
    sparse = [Problem(n, density, **shared) for density in densities if density * dense.blocks >= 1]
    return {
        (name, problem.density, direction): problem
        for name in peers(dense)
        for problem in (sparse if name in BLOCK_SPARSE else [dense])
        for direction in (FORWARD, BOTH)
    }


def _measured(problems: dict[tuple[str, float, str], Problem], repeats: int, predict: Predict | None) -> pd.DataFrame:
    """Measure problems of one length, with a row for each."""
    first = next(iter(problems.values()))
    inputs, attends = first.inputs(), {}
    for (name, density, _), problem in problems.items():
        if (name, density) not in attends:
            attends[name, density] = (lambda q, k, v: predict(q, k)) if predict else contender(name, problem)
    runs = {key: lambda key=key: run(attends[key[:2]], inputs, backward=key[2] == BOTH) for key in problems}
    seconds = repeated_seconds(runs, repeats, first.device)
    rows = [
        {"n": problem.length, "density": density, "what": name, "pass": direction,
         **summary(pd.DataFrame({"all": seconds[name, density, direction]})).drop(columns="disturbed").loc["all"],
         "bytes": peak_bytes(name, problem, direction == BOTH, predict)}
        for (name, density, direction), problem in problems.items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def exponent(n: Sequence[float], values: Sequence[float]) -> float:
    """Return the power of n with which values grow: the least-squares slope of their logarithms.

    Values that are not positive, because memory did not grow, are left out. With fewer than two lengths the result is NaN.
    """
    n, values = np.asarray(n, dtype=float), np.asarray(values, dtype=float)
    counted = values > 0
    if len(np.unique(n[counted])) < 2:
        return float("nan")
    return float(np.polyfit(np.log(n[counted]), np.log(values[counted]), 1)[0])


def exponents(table: pd.DataFrame, shortest: int = 0) -> pd.DataFrame:
    """Return the exponents of time and memory, a row per curve: ``what``, ``density``, ``pass``, ``seconds``, ``bytes``.

    Lengths below ``shortest`` are left out, because fixed costs hide the growth, and so are bytes that are not
    :func:`~replication.timing.repeats.measurable`.
    """
    table = table.assign(bytes=measurable(table))
    rows = [
        {**dict(zip(CURVE, curve, strict=True)), **{name: exponent(points.n, points[name]) for name in ("seconds", "bytes")}}
        for curve, points in table[table.n >= shortest].groupby(CURVE, dropna=False, sort=False)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=[*CURVE, "seconds", "bytes"])


def break_even(densities: Sequence[float], seconds: Sequence[float], peer: Sequence[float] | float) -> float:
    """Return the density up to which an attention is faster than its peer, interpolated on logarithmic axes.

    Parameters
    ----------
    densities : sequence of float
        Ascending densities.
    seconds : sequence of float
        Times of the attention at these densities.
    peer : sequence of float, or float
        Times of its peer; one number for a peer without densities.

    Returns
    -------
    float
        NaN if the attention is slower at the smallest density, and the largest density if it is faster at all of them.
    """
    ahead = np.log(np.broadcast_to(peer, len(densities))) - np.log(seconds)
    if ahead[0] < 0:
        return float("nan")
    slower = np.flatnonzero(ahead < 0)
    if not len(slower):
        return float(densities[-1])
    after = slower[0]
    before = after - 1
    share = ahead[before] / (ahead[before] - ahead[after])
    logs = np.log([densities[before], densities[after]])
    return float(np.exp(logs[0] + share * (logs[1] - logs[0])))


def break_evens(table: pd.DataFrame) -> pd.DataFrame:
    """Return the :func:`break_even` densities of block-sparse attention: ``n``, ``pass``, ``peer``, ``predicted``, ``density``.

    If the predictor was measured, rows with ``predicted`` True add its time to the attention's.
    """
    rows = []
    for (n, direction), group in table.groupby(["n", "pass"], sort=False):
        times = group.pivot_table("seconds", "density", "what")
        predictor = table[(table.n == n) & (table.what == PREDICTOR)].seconds
        # At short lengths, every density can have less than one block.
        if "block-sparse" not in times:
            continue
        ours = times.pop("block-sparse").dropna()
        for peer in times:
            theirs = times[peer].reindex(ours.index) if peer in BLOCK_SPARSE else times[peer].dropna().item()
            for added in [0.0, *predictor]:
                row = {"n": n, "pass": direction, "peer": peer, "predicted": added > 0}
                rows.append(row | {"density": break_even(ours.index, (ours + added).to_numpy(), theirs)})
    return pd.DataFrame(rows, columns=["n", "pass", "peer", "predicted", "density"])
