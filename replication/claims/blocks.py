"""What the Sparsefinder paper claims about its efficient, block-based variants (section 6.1)."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path

import pandas as pd

from replication.claims.finding import Finding, Test, registering
from replication.results import at_every_count, read_block_times, read_blocks, spread

#: Numbers of attended blocks that the paper compares: Sparsefinder's few with BigBird's many.
FEW, MANY = 2, 22
SPARSEFINDER = ["sparsefinder-v1", "sparsefinder-v2"]

TESTS: dict[str, Test] = {}
_claim = registering(TESTS)


def _measured(test: Callable[[pd.DataFrame, pd.DataFrame], Finding]) -> Test:
    """A test of the nats ``[seed]`` and of the seconds ``[size]`` by (method, K), where both K of the paper were measured."""

    @wraps(test)
    def on_folder(folder: Path) -> Finding | None:
        if not (folder / "blocks").is_dir():
            return None
        evaluated, timed = at_every_count(read_blocks(folder)), at_every_count(read_block_times(folder))
        if not {FEW, MANY} <= set(evaluated["count"]):
            return Finding(None, [], f"no block size has room for K = {FEW} and K = {MANY}")
        keys = ["method", "count"]
        nats = evaluated.pivot_table(index="seed", columns=keys, values="nats")
        seconds = timed.pivot_table(index="block_size", columns=keys, values="model_seconds")
        return test(nats, seconds)

    return on_folder


def _better_than(rival: str, nats: pd.DataFrame) -> Finding:
    """Both versions have fewer nats with few blocks than the rival with many, for every seed."""
    few = nats[[(method, FEW) for method in SPARSEFINDER]].max(axis=1)
    margin = nats[rival, MANY] - few
    in_words = ", ".join(f"{method} {spread(nats[method, FEW])}" for method in SPARSEFINDER)
    numbers = f"nats at K = {FEW}: {in_words}; {rival} at K = {MANY}: {spread(nats[rival, MANY])}"
    return Finding(bool((margin > 0).all()), margin.tolist(), numbers)


@_claim("blocks-two-beat-22-of-bigbird")
@_measured
def _(nats: pd.DataFrame, seconds: pd.DataFrame) -> Finding:
    return _better_than("bigbird-softmax", nats)


@_claim("blocks-two-beat-22-of-bigbird-with-entmax")
@_measured
def _(nats: pd.DataFrame, seconds: pd.DataFrame) -> Finding:
    return _better_than("bigbird", nats)


@_claim("blocks-two-are-faster-than-22-of-bigbird")
@_measured
def _(nats: pd.DataFrame, seconds: pd.DataFrame) -> Finding:
    """In the mean over block sizes, against the faster BigBird."""
    mean = seconds.mean()
    slower = max(mean[method, FEW] for method in SPARSEFINDER)
    ratio = mean[[("bigbird", MANY), ("bigbird-softmax", MANY)]].min() / slower
    in_words = ", ".join(f"{method} {1e3 * mean[method, FEW]:.2f}" for method in SPARSEFINDER)
    numbers = (
        f"ms per sequence at K = {FEW}: {in_words}; BigBird at K = {MANY}: "
        f"{1e3 * mean['bigbird-softmax', MANY]:.2f} (softmax), {1e3 * mean['bigbird', MANY]:.2f} (entmax)"
    )
    return Finding(bool(ratio > 1), [ratio], numbers)


@_claim("blocks-more-help-sparsefinder-not-bigbird")
@_measured
def _(nats: pd.DataFrame, seconds: pd.DataFrame) -> Finding:
    """From few to many blocks, both versions gain more than either BigBird."""
    gain = pd.DataFrame({method: nats[method, FEW] - nats[method, MANY] for method in nats.columns.levels[0]})
    margin = gain[SPARSEFINDER].min(axis=1) - gain[["bigbird", "bigbird-softmax"]].max(axis=1)
    numbers = f"nats gained from K = {FEW} to K = {MANY}: " + ", ".join(f"{x} {spread(gain[x])}" for x in gain)
    return Finding(bool((margin > 0).all()), margin.tolist(), numbers)


@_claim("blocks-faster-than-full-entmax")
def _(folder: Path) -> Finding | None:
    """Both versions at the largest K of every block size, against the faster of the two full models."""
    if not (folder / "blocks").is_dir():
        return None
    timed = read_block_times(folder)
    full = timed[timed["method"].isin(["full", "full-kernel"])].groupby("block_size")["model_seconds"].min()
    learned = timed[timed["method"].isin(SPARSEFINDER)]
    largest = learned[learned["count"] == learned.groupby("block_size")["count"].transform("max")]
    slowest = largest.groupby("block_size")["model_seconds"].max()
    ratio = (full / slowest).dropna()
    tokens, device = timed["length"].iloc[0], timed["device"].iloc[0]
    in_words = ", ".join(f"{value:.2f} times as fast at block size {size}" for size, value in ratio.items())
    return Finding(bool((ratio > 1).all()), ratio.tolist(), f"{in_words}; {tokens} tokens, {device}")
