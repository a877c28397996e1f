"""What the Sparsefinder paper claims about its efficient, block-based variants (section 6.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import numpy as np
import pandas as pd

from replication.claims.finding import Effect, Finding, Test, registering
from replication.claims.scores import effect, means, over_seeds
from replication.reading import read_table
from replication.results import at_every_count, read_block_times, read_blocks
from replication.timing.repeats import block_seconds, note_of

#: Numbers of attended blocks that the paper compares: Sparsefinder's few with BigBird's many.
FEW, MANY = 2, 22
SPARSEFINDER = ["sparsefinder-v1", "sparsefinder-v2"]
BIGBIRD = ["bigbird", "bigbird-softmax"]

TESTS: dict[str, Test] = {}
_claim = registering(TESTS)


@dataclass(frozen=True)
class Nats:
    """Nats ``[1 + R, seeds]`` by (method, K), means over block sizes and numbers of clusters; and what was resampled."""

    values: dict[tuple[str, int], np.ndarray]
    units: str

    def effect(self, what: str, value: np.ndarray) -> Effect:
        return effect(what, value, "student seed", self.units)


def _nats(folder: Path, evaluated: pd.DataFrame) -> Nats:
    keys = ["seed", "block_size", "method", "count", "clusters"]
    paths = sorted((folder / "blocks").glob("size*/evaluated/losses_seed*.parquet"))
    if paths:
        losses = pd.concat([read_table(path) for path in paths]).pivot(index=keys, columns="sequence")
        losses = losses.loc[pd.MultiIndex.from_frame(evaluated[keys])]
        scores = means(losses["nats"].to_numpy().T, losses["places"].to_numpy().T)
        units = f"{losses['nats'].shape[1]} sequences"
    else:
        scores, units = evaluated["nats"].to_numpy()[None], ""
    rows = evaluated.reset_index(drop=True).groupby(["method", "count", "seed"]).indices
    seeds = sorted(evaluated["seed"].unique())
    values = {
        point: np.stack([scores[:, rows[(*point, seed)]].mean(axis=1) for seed in seeds], axis=1)
        for point in {(method, count) for method, count, _ in rows}
    }
    return Nats(values, units)


def _measured(test: Callable[[Nats, pd.DataFrame], Finding]) -> Test:
    """A test of the nats and of the seconds by repeat, where both K of the paper were measured."""

    @wraps(test)
    def on_folder(folder: Path) -> Finding:
        evaluated, timed = at_every_count(read_blocks(folder)), at_every_count(read_block_times(folder))
        if not {FEW, MANY} <= set(evaluated["count"]):
            return Finding([], [f"no block size has room for K = {FEW} and K = {MANY}"])
        return test(_nats(folder, evaluated), block_seconds(timed))

    return on_folder


def _over_sizes(what: str, ratios: pd.Series) -> Effect:
    """The mean over block sizes, as the paper's figure has it; its interval is over repeats: sizes differ by their nature."""
    sizes = ratios.index.get_level_values("block_size").nunique()
    return over_seeds(f"{what}, {sizes} block sizes", ratios.groupby("repeat").mean(), "repeat")


def _disturbed(seconds: pd.DataFrame) -> list[str]:
    return note_of(seconds.unstack("block_size"))


def _better_than(rival: str, nats: Nats) -> Finding:
    """Both versions with few blocks against the rival with many."""
    return Finding(
        [
            nats.effect(
                f"{rival} with {MANY} - {method} with {FEW}", nats.values[rival, MANY] - nats.values[method, FEW]
            )
            for method in SPARSEFINDER
        ]
    )


@_claim("blocks-two-beat-22-of-bigbird")
@_measured
def _(nats: Nats, seconds: pd.DataFrame) -> Finding:
    return _better_than("bigbird-softmax", nats)


@_claim("blocks-two-beat-22-of-bigbird-with-entmax")
@_measured
def _(nats: Nats, seconds: pd.DataFrame) -> Finding:
    return _better_than("bigbird", nats)


@_claim("blocks-more-help-sparsefinder-not-bigbird")
@_measured
def _(nats: Nats, seconds: pd.DataFrame) -> Finding:
    """From few to many blocks, both versions gain more than either BigBird."""
    gain = {method: nats.values[method, FEW] - nats.values[method, MANY] for method in SPARSEFINDER + BIGBIRD}
    return Finding(
        [
            nats.effect(f"gain of {method} - gain of {rival}", gain[method] - gain[rival])
            for method in SPARSEFINDER
            for rival in BIGBIRD
        ]
    )


@_claim("blocks-two-are-faster-than-22-of-bigbird")
@_measured
def _(nats: Nats, seconds: pd.DataFrame) -> Finding:
    """Against the faster BigBird of each block size."""
    rival = seconds[[(name, MANY) for name in BIGBIRD]].min(axis=1)
    return Finding(
        [
            _over_sizes(f"BigBird with {MANY} / {method} with {FEW}", rival / seconds[method, FEW])
            for method in SPARSEFINDER
        ],
        _disturbed(seconds[[(name, MANY) for name in BIGBIRD] + [(name, FEW) for name in SPARSEFINDER]]),
    )


@_claim("blocks-bigbird-is-faster")
@_measured
def _(nats: Nats, seconds: pd.DataFrame) -> Finding:
    """At equal K, mean over all of them, as the paper's code runs BigBird (softmax)."""
    mean = {method: seconds[method].mean(axis=1) for method in [*SPARSEFINDER, "bigbird-softmax"]}
    return Finding(
        [
            _over_sizes(f"{method} / BigBird at equal K", mean[method] / mean["bigbird-softmax"])
            for method in SPARSEFINDER
        ],
        _disturbed(seconds[list(mean)]),
    )


@_claim("blocks-faster-than-full-entmax")
def _(folder: Path) -> Finding:
    """Both versions at the largest K of every block size, against the faster of the two full models."""
    timed = read_block_times(folder)
    if not set(SPARSEFINDER) <= set(timed["method"]):
        return Finding([], ["no block size has blocks to choose from"])
    every = block_seconds(timed)
    seconds = every.T.groupby("method")
    full = seconds.min().T[["full", "full-kernel"]].min(axis=1)
    # More blocks take longer: the largest K that fits a size is the slowest.
    slowest = seconds.max().T
    tokens, device = timed["length"].iloc[0], timed["device"].iloc[0]
    effects = [_over_sizes(f"full / {method} at the largest K", full / slowest[method]) for method in SPARSEFINDER]
    notes = _disturbed(every[["full", "full-kernel", *SPARSEFINDER]])
    return Finding(effects, [f"{tokens} tokens, {device}", *notes])
