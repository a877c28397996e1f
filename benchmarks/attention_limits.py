"""The arithmetic of benchmarks/attention.py: the limit of the chip, speed against peers and the targets, and break-even points.

A row is a dictionary: attention, part ("forward" or "both"), n, batch, heads, dimension, causal, block, density, milliseconds
(None where it failed), replayed (milliseconds from a CUDA graph, None where that failed), megabytes.
"""

import itertools
from collections.abc import Iterable, Sequence

#: Matrix products over all visited pairs: scores and output; with the backward pass, scores once more and four gradients.
PRODUCTS = {"forward": 2, "both": 7}
#: (ours, peer, the peer's density) -> how many times as fast as the peer, forward and backward together, at a tenth of the
#: blocks. FlexAttention is softmax, so it is compared with ours at alpha = 1.
TARGETS = {
    ("ours", "adasplash-2", 1.0): 3.0,
    ("ours", "sdpa", 1.0): 4.0,
    ("ours, softmax", "flex", 0.1): 0.8,
}
DENSITY = 0.1
#: The least share of the limit's speed.
LIMIT_TARGET = 0.5
#: Most of the attention's time that the prediction of its blocks may take.
PREDICTION_TARGET = 0.15
#: What makes two rows comparable.
SETTING = ("part", "n", "dimension", "causal", "block")


def limit_milliseconds(row: dict, flops_per_second: float) -> float:
    """The time of the matrix products of the visited blocks at the measured rate; half of them if causal."""
    pairs = row["batch"] * row["heads"] * row["n"] ** 2 * row["density"] * (0.5 if row["causal"] else 1.0)
    return 1e3 * PRODUCTS[row["part"]] * 2 * row["dimension"] * pairs / flops_per_second


def with_limits(rows: Iterable[dict], flops_per_second: float) -> list[dict]:
    """Rows that were measured, each with its limit and the share of the limit's speed that its kernels reach."""
    measured = [row for row in rows if row["milliseconds"] is not None]
    limits = [limit_milliseconds(row, flops_per_second) for row in measured]
    return [
        row | {"limit_milliseconds": limit, "share_of_limit": limit / (row["replayed"] or row["milliseconds"])}
        for row, limit in zip(measured, limits, strict=True)
    ]


def compared_with_targets(rows: Iterable[dict]) -> list[dict]:
    """For each target and setting with both numbers: how many times as fast as the peer ours is, and whether that suffices.

    Once with the host's time, once replayed from a CUDA graph. A peer without blocks is measured once per setting, and compared
    with ours of every block size.
    """
    rows = [row for row in rows if row["milliseconds"] is not None and row["part"] == "both"]
    compared = []
    for (name, peer, peer_density), target in TARGETS.items():
        for ours, other in itertools.product(rows, rows):
            wanted = (ours["attention"], ours["density"], other["attention"], other["density"])
            if wanted == (name, DENSITY, peer, peer_density) and _same_setting(ours, other):
                row = {name: ours[name] for name in SETTING} | {"peer": peer, "target": target}
                row |= _judged("", other["milliseconds"], ours["milliseconds"], target)
                if None not in (other["replayed"], ours["replayed"]):
                    row |= _judged("replayed_", other["replayed"], ours["replayed"], target)
                compared.append(row)
    return compared


def _judged(kind: str, peer: float, ours: float, target: float) -> dict:
    return {f"{kind}ratio": peer / ours, f"{kind}met": peer / ours >= target}


def prediction_shares(rows: Iterable[dict]) -> list[dict]:
    """The time of predicting blocks as a share of the attention's, forward and backward, at a tenth of the blocks."""
    rows = [row for row in rows if row["milliseconds"] is not None]
    shares = []
    for row, ours in itertools.product(rows, rows):
        same = all(row[name] == ours[name] for name in SETTING if name != "part")
        attention = (ours["attention"], ours["part"], ours["density"]) == ("ours", "both", DENSITY)
        if same and attention and row["part"] == "prediction":
            shares.append(
                {name: row[name] for name in SETTING if name != "part"}
                | _share("", row["milliseconds"], ours["milliseconds"])
                | _share("replayed_", row["replayed"], ours["replayed"])
            )
    return shares


def _share(kind: str, prediction: float | None, attention: float | None) -> dict:
    if None in (prediction, attention):
        return {}
    return {f"{kind}share": prediction / attention, f"{kind}met": prediction / attention <= PREDICTION_TARGET}


def _same_setting(ours: dict, other: dict) -> bool:
    return all(ours[name] == other[name] or (name == "block" and other[name] is None) for name in SETTING)


def break_even_density(densities: Sequence[float], milliseconds: Sequence[float], peer: float) -> float | None:
    """The density up to which ours is faster than `peer` milliseconds, between the measured ones by a straight line.

    None if it is slower at every density; the largest density if it is faster at all.
    """
    points = sorted(zip(densities, milliseconds, strict=True))
    if points[0][1] > peer:
        return None
    for (low, fast), (high, slow) in itertools.pairwise(points):
        if slow > peer:
            return low + (high - low) * (peer - fast) / (slow - fast)
    return points[-1][0]


def break_even_points(rows: Iterable[dict]) -> list[dict]:
    """The break-even density of ours against each peer that is dense, per setting."""
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
