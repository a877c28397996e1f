"""The arithmetic of benchmarks/attention.py: the limit of the chip, speed against peers and the targets, and break-even points.

A row is a dictionary: attention, part ("forward" or "both"), n, batch, heads, dimension, causal, block, density, milliseconds
(None where it failed), megabytes.
"""

import itertools
from collections.abc import Iterable, Sequence

#: Matrix products over all visited pairs: scores and output; with the backward pass, scores once more and four gradients.
PRODUCTS = {"forward": 2, "both": 7}
#: (ours at this density, peer, at the peer's density) -> how many times as fast as the peer, forward and backward together.
TARGETS = {
    (0.1, "adasplash-2", 1.0): 3.0,
    (0.1, "sdpa", 1.0): 4.0,
    (0.1, "flex", 0.1): 0.8,
    (1.0, "adasplash-2", 1.0): 1.0,
}
#: Most of the attention's time that the prediction of its blocks may take.
PREDICTION_TARGET = 0.15
#: What makes two rows comparable.
SETTING = ("part", "n", "dimension", "causal", "block")


def limit_milliseconds(row: dict, flops_per_second: float) -> float:
    """The time of the matrix products of the visited blocks at the measured rate; half of them if causal."""
    pairs = row["batch"] * row["heads"] * row["n"] ** 2 * row["density"] * (0.5 if row["causal"] else 1.0)
    return 1e3 * PRODUCTS[row["part"]] * 2 * row["dimension"] * pairs / flops_per_second


def with_limits(rows: Iterable[dict], flops_per_second: float) -> list[dict]:
    """Rows that were measured, each with its limit and the share of the limit's speed that it reaches."""
    measured = [row for row in rows if row["milliseconds"] is not None]
    limits = [limit_milliseconds(row, flops_per_second) for row in measured]
    return [
        row | {"limit_milliseconds": limit, "share_of_limit": limit / row["milliseconds"]}
        for row, limit in zip(measured, limits, strict=True)
    ]


def compared_with_targets(rows: Iterable[dict]) -> list[dict]:
    """For each target and setting with both numbers: how many times as fast as the peer ours is, and whether that suffices.

    A peer without blocks is measured once per setting, and compared with ours of every block size.
    """
    rows = [row for row in rows if row["milliseconds"] is not None and row["part"] == "both"]
    compared = []
    for (density, peer, peer_density), target in TARGETS.items():
        for ours in rows:
            if ours["attention"] != "ours" or ours["density"] != density:
                continue
            for other in rows:
                if other["attention"] != peer or other["density"] != peer_density or not _same_setting(ours, other):
                    continue
                ratio = other["milliseconds"] / ours["milliseconds"]
                setting = {name: ours[name] for name in SETTING}
                compared.append(
                    setting
                    | {"density": density, "peer": peer, "ratio": ratio, "target": target, "met": ratio >= target}
                )
    return compared


def prediction_shares(rows: Iterable[dict]) -> list[dict]:
    """The time of predicting blocks as a share of the attention's, forward and backward, at a tenth of the blocks."""
    rows = list(rows)
    shares = []
    for row in rows:
        for ours in rows:
            same = all(row[name] == ours[name] for name in SETTING if name != "part")
            timed = row["part"] == "prediction" and (ours["attention"], ours["part"], ours["density"]) == (
                "ours",
                "both",
                0.1,
            )
            if same and timed and None not in (row["milliseconds"], ours["milliseconds"]):
                share = row["milliseconds"] / ours["milliseconds"]
                setting = {"prediction": row["attention"]} | {name: row[name] for name in SETTING if name != "part"}
                shares.append(
                    setting | {"share": share, "target": PREDICTION_TARGET, "met": share <= PREDICTION_TARGET}
                )
    return shares


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
