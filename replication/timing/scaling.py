"""How time and memory of attention grow with its length: measured, fitted, and where block-sparse attention begins to pay."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from replication.timing.clock import peak_bytes, repeated_seconds, run
from replication.timing.contenders import BLOCK_SPARSE, Predict, Problem, contender, peers
from replication.timing.repeats import measurable, summary

FORWARD, BOTH = "forward", "forward+backward"
#: The name under which the table lists the prediction of blocks.
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
    """Time and memory of block-sparse entmax attention and of its peers.

    Parameters
    ----------
    lengths, densities : sequence of int, of float
        Tokens, and shares of the blocks that are visited. A density that leaves a block of queries less than one block is left
        out, as is a peer that would not fit into memory.
    heads, dimension, block : int
    repeats : int
        Runs of which the median and the quartiles are taken, after one that does not count.
    predict : callable, optional
        From q and k to a :class:`~sparselib.kernels.BlockMask`, to be measured too; picklable, if on a CPU.

    Returns
    -------
    DataFrame
        A row for each ``n``, ``density`` (1 for attention without blocks, NaN for the predictor), ``what`` and ``pass``:
        ``seconds, lower, upper``, ``bytes``, and on what: ``device``, ``threads``, ``torch``.

    Raises
    ------
    ValueError
        If there is no length or density, or a size is below 1.
    """
    if not lengths or not densities or repeats < 1:
        raise ValueError(f"lengths {lengths}, densities {densities}, repeats {repeats}: at least one of each expected")
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
    """What is run at one length: a problem per name, density and pass."""
    dense = Problem(n, 1.0, **shared)
    sparse = [Problem(n, density, **shared) for density in densities if density * dense.blocks >= 1]
    return {
        (name, problem.density, which): problem
        for name in peers(dense)
        for problem in (sparse if name in BLOCK_SPARSE else [dense])
        for which in (FORWARD, BOTH)
    }


def _measured(problems: dict[tuple[str, float, str], Problem], repeats: int, predict: Predict | None) -> pd.DataFrame:
    """A row per problem, all of one length."""
    first = next(iter(problems.values()))
    inputs, attends = first.inputs(), {}
    for (name, density, _), problem in problems.items():
        if (name, density) not in attends:
            attends[name, density] = (lambda q, k, v: predict(q, k)) if predict else contender(name, problem)
    runs = {key: lambda key=key: run(attends[key[:2]], inputs, backward=key[2] == BOTH) for key in problems}
    seconds = repeated_seconds(runs, repeats, first.device)
    rows = [
        {"n": problem.length, "density": density, "what": name, "pass": which,
         **summary(pd.DataFrame({"all": seconds[name, density, which]})).drop(columns="disturbed").loc["all"],
         "bytes": peak_bytes(name, problem, which == BOTH, predict)}
        for (name, density, which), problem in problems.items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def exponent(n: Sequence[float], values: Sequence[float]) -> float:
    """The power of n that the values grow with: the slope of a straight line through their logarithms, by least squares.

    Values that are not positive (no growth of memory was seen) do not count; NaN for fewer than two lengths.
    """
    n, values = np.asarray(n, dtype=float), np.asarray(values, dtype=float)
    counted = values > 0
    if len(np.unique(n[counted])) < 2:
        return float("nan")
    return float(np.polyfit(np.log(n[counted]), np.log(values[counted]), 1)[0])


def exponents(table: pd.DataFrame, shortest: int = 0) -> pd.DataFrame:
    """Exponents of time and memory, a row per curve: ``what``, ``density``, ``pass``, ``seconds``, ``bytes``.

    Only lengths from ``shortest`` on count: below, fixed costs hide the growth. So do bytes that are :func:`measurable`.
    """
    told = table.assign(bytes=measurable(table))
    rows = [
        {**dict(zip(CURVE, curve, strict=True)), **{name: exponent(points.n, points[name]) for name in ("seconds", "bytes")}}
        for curve, points in told[told.n >= shortest].groupby(CURVE, dropna=False, sort=False)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def break_even(densities: Sequence[float], seconds: Sequence[float], peer: Sequence[float] | float) -> float:
    """The density up to which an attention is faster than its peer, interpolated on logarithmic axes.

    Parameters
    ----------
    densities : sequence of float
        Ascending.
    seconds, peer : sequence of float
        Of the attention and of its peer at these densities; one number for a peer that knows none.

    Returns
    -------
    float
        NaN if it is slower even at the smallest density; the largest one measured if it is faster at all of them.
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
    """:func:`break_even` of block-sparse attention: ``n``, ``pass``, ``peer``, ``predicted``, ``density``.

    Where the predictor was measured, there are rows with its time added to that of the attention, ``predicted`` True.
    """
    rows = []
    for (n, which), group in table.groupby(["n", "pass"], sort=False):
        times = group.pivot_table("seconds", "density", "what")
        predictor = table[(table.n == n) & (table.what == PREDICTOR)].seconds
        if "block-sparse" not in times:  # no density leaves it a block at this length
            continue
        ours = times.pop("block-sparse").dropna()
        for peer in times:
            theirs = times[peer].reindex(ours.index) if peer in BLOCK_SPARSE else times[peer].dropna().item()
            for added in [0.0, *predictor]:
                row = {"n": n, "pass": which, "peer": peer, "predicted": added > 0}
                rows.append(row | {"density": break_even(ours.index, (ours + added).to_numpy(), theirs)})
    return pd.DataFrame(rows)
