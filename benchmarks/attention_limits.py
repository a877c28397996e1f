"""The arithmetic of benchmarks/attention.py: hardware limits, speedups over baselines, targets, and break-even densities.

A row is a dictionary with the keys attention, part ("forward" or "both"), n, batch, heads, dimension, causal, block, density,
milliseconds (None if the call failed), replayed (milliseconds from a CUDA graph, None if the capture failed) and megabytes.
"""

import itertools
from collections.abc import Iterable, Sequence

#: Matrix products over all visited pairs: scores and output, plus scores again and four gradients in the backward pass.
PRODUCTS = {"forward": 2, "both": 7}
#: Target speedup for each (ours, baseline, baseline's density), forward and backward together, at a tenth of the blocks.
#: FlexAttention computes softmax, so it is compared with ours at alpha = 1.
TARGETS = {
    ("ours", "sdpa", 1.0): 4.0,
    ("ours, softmax", "flex", 0.1): 1.2,
}
DENSITY = 0.1
#: Smallest accepted share of the limit's speed.
LIMIT_TARGET = 0.5
#: Largest accepted time for predicting the blocks, as a share of the attention's time.
PREDICTION_TARGET = 0.15
#: Keys that two comparable rows have in common.
SETTING = ("part", "n", "dimension", "causal", "block")


def limit_milliseconds(row: dict, flops_per_second: float) -> float:
    """Return the time of the matrix products of the visited blocks at the measured rate, or half of it if causal."""
    pairs = row["batch"] * row["heads"] * row["n"] ** 2 * row["density"] * (0.5 if row["causal"] else 1.0)
    return 1e3 * PRODUCTS[row["part"]] * 2 * row["dimension"] * pairs / flops_per_second


def with_limits(rows: Iterable[dict], flops_per_second: float) -> list[dict]:
    """Return the measured rows with their limit and the share of the limit's speed that they reach."""
    measured = [row for row in rows if row["milliseconds"] is not None]
    limits = [limit_milliseconds(row, flops_per_second) for row in measured]
    return [
        row | {"limit_milliseconds": limit, "share_of_limit": limit / (row["replayed"] or row["milliseconds"])}
        for row, limit in zip(measured, limits, strict=True)
    ]


def compared_with_targets(rows: Iterable[dict]) -> list[dict]:
    """Return the speedup over the baseline, and whether it meets the target, for each target and setting with both numbers.

    Times are compared as called from Python and as replayed from a CUDA graph. A baseline without blocks is measured once per
    setting, and compared with ours at every block size.
    """
    rows = [row for row in rows if row["milliseconds"] is not None and row["part"] == "both"]
    compared = []
    for (name, peer, peer_density), target in TARGETS.items():
        for ours, other in itertools.product(rows, rows):
            key = (ours["attention"], ours["density"], other["attention"], other["density"])
            if key == (name, DENSITY, peer, peer_density) and _same_setting(ours, other):
                row = {name: ours[name] for name in SETTING} | {"peer": peer, "target": target}
                row |= _judged("", other["milliseconds"], ours["milliseconds"], target)
                if None not in (other["replayed"], ours["replayed"]):
                    row |= _judged("replayed_", other["replayed"], ours["replayed"], target)
                compared.append(row)
    return compared


def _judged(kind: str, peer: float, ours: float, target: float) -> dict:
    """Return the speedup, and whether it meets the target."""
    return {f"{kind}ratio": peer / ours, f"{kind}met": peer / ours >= target}


def prediction_shares(rows: Iterable[dict]) -> list[dict]:
    """Return the prediction time as a share of the attention's, forward and backward, at a tenth of the blocks."""
    rows = [row for row in rows if row["milliseconds"] is not None]
    shares = []
    for row, ours in itertools.product(rows, rows):
        same_setting = all(row[name] == ours[name] for name in SETTING if name != "part")
        is_attention = (ours["attention"], ours["part"], ours["density"]) == ("ours", "both", DENSITY)
        if same_setting and is_attention and row["part"] == "prediction":
            shares.append(
                {name: row[name] for name in SETTING if name != "part"}
                | _share("", row["milliseconds"], ours["milliseconds"])
                | _share("replayed_", row["replayed"], ours["replayed"])
            )
    return shares


def _share(kind: str, prediction: float | None, attention: float | None) -> dict:
    """Return the share, and whether it meets the target, or nothing if a time is missing."""
    if None in (prediction, attention):
        return {}
    return {f"{kind}share": prediction / attention, f"{kind}met": prediction / attention <= PREDICTION_TARGET}


def _same_setting(ours: dict, other: dict) -> bool:
    """Return whether two rows are comparable; a baseline without blocks is comparable with any block size."""
    return all(ours[name] == other[name] or (name == "block" and other[name] is None) for name in SETTING)


def break_even_density(densities: Sequence[float], milliseconds: Sequence[float], peer: float) -> float | None:
    """Return the density up to which ours takes less than `peer` milliseconds, by linear interpolation.

    The result is None if ours is slower at every density, and the largest density if it is faster at all of them.
    """
    points = sorted(zip(densities, milliseconds, strict=True))
    if points[0][1] > peer:
        return None
    for (low, fast), (high, slow) in itertools.pairwise(points):
        if slow > peer:
            return low + (high - low) * (peer - fast) / (slow - fast)
    return points[-1][0]


def break_even_points(rows: Iterable[dict]) -> list[dict]:
    """Return the break-even density of ours against each dense baseline, per setting."""
    rows = [row for row in rows if row["milliseconds"] is not None]
    curves = {}
    for row in rows:
        if row["attention"] == "ours":
            curves.setdefault(tuple(row[name] for name in SETTING), []).append(row)
    points = []
    for setting, curve in curves.items():
        for peer in rows:
            if peer["attention"] == "ours" or peer["density"] != 1.0 or not _same_setting(curve[0], peer):
                continue
            measured = [row["density"] for row in curve], [row["milliseconds"] for row in curve]
            point = break_even_density(*measured, peer["milliseconds"])
            points.append(dict(zip(SETTING, setting, strict=True)) | {"peer": peer["attention"], "density": point})
    return points
