"""Block-sparse entmax attention on GPUs, and AdaSplash-2, from the results of their scripts in benchmarks/."""

import json
from pathlib import Path

from replication.files.paths import ROOT
from replication.tables.markers import markdown

FOLDER = ROOT / "benchmarks" / "results"
#: Share of the blocks at which targets are judged, and the least share of the speed of the products alone.
DENSITY, LEAST_SHARE = 0.1, 0.5
PEERS = {
    "sdpa": "PyTorch's flash attention over all blocks",
    "flex": "FlexAttention with the same blocks, both softmax",
    "adasplash-2": "AdaSplash-2 over all blocks",
}


def reports() -> list[dict]:
    """Return the report of each GPU, in the order of the file names."""
    return [json.loads(path.read_text()) for path in sorted(Path(FOLDER).glob("attention-*.json"))]


def speed() -> str:
    """Return a table per GPU of the milliseconds of both passes."""
    return "\n\n".join(f"{_heading(report)}\n\n{_times(report)}" for report in reports())


def _heading(report: dict) -> str:
    hardware, chip = report["hardware"], report["chip"]
    versions = ", ".join(f"{name} {version}" for name, version in hardware["versions"].items())
    rates = f"copies at {chip['copy_bytes_per_second'] / 1e12:.1f} TB/s"
    if "bf16_flops_per_second" in chip:
        rates = f"{chip['bf16_flops_per_second'] / 1e12:.0f} TFLOP/s of bfloat16 products, {rates}"
    device = f"{hardware['gpu']}, driver {hardware['driver']}, CUDA {hardware['cuda']}, {versions}; measured: {rates}."
    stopped = "Stopped by its time limit." if report["stopped_early"] else ""
    return f"{device} {report.get('note', stopped)}".strip()


def _times(report: dict) -> str:
    rows = [row for row in report["rows"] if row["part"] == "both"]
    sizes = sorted({(row["causal"], row["dimension"], row["n"]) for row in rows})
    columns = {
        "ours, 5 %": ("ours", 128, 0.05),
        "10 %": ("ours", 128, 0.1),
        "10 %, blocks of 64": ("ours", 64, 0.1),
        "20 %": ("ours", 128, 0.2),
        "all": ("ours", 64, 1.0),
        "SDPA flash": ("sdpa", None, 1.0),
        "SDPA cuDNN": ("sdpa-cudnn", None, 1.0),
        "SDPA's choice": ("sdpa-default", None, 1.0),
        "AdaSplash-2": ("adasplash-2", None, 1.0),
        "softmax, 10 %": ("ours, softmax", 128, 0.1),
        "FlexAttention, 10 %": ("flex", 128, 0.1),
    }
    present = {(row["attention"], row["block"], row["density"]) for row in rows}
    columns = {name: key for name, key in columns.items() if key in present}
    cells = []
    for causal, dimension, n in sizes:
        by_column = {}
        for row in rows:
            if (row["causal"], row["dimension"], row["n"]) == (causal, dimension, n):
                by_column[row["attention"], row["block"], row["density"]] = row
        times = [_milliseconds(by_column.get(column)) for column in columns.values()]
        cells.append([f"{n:,}{', causal' if causal else ''}", str(dimension), *times])
    return markdown(["n", "D", *columns], cells)


def targets() -> str:
    """Return a row per GPU, target and dimension: how many sizes meet it, and the smallest and largest value, with its size."""
    header = ["GPU", "forward and backward", "D", "target", "sizes that meet it", "as called", "lowest", "highest"]
    rows = []
    for report in reports():
        groups: dict[tuple[str, int, str], list[tuple[dict, str]]] = {}
        for row in report["targets"]:
            what = f"times as fast as {PEERS[row['peer']]}", row["dimension"], f"at least {row['target']:g}"
            groups.setdefault(what, []).append((row, "ratio"))
        for row in report["prediction"]:
            what = "predicting the blocks, share of the attention", row["dimension"], "at most 15 %"
            groups.setdefault(what, []).append((row, "share"))
        for row in report["rows"]:
            if (row["attention"], row.get("part"), row["density"]) == (
                "ours",
                "both",
                DENSITY,
            ) and "share_of_limit" in row:
                what = "share of the speed of the matrix products alone", row["dimension"], "at least 50 %"
                judged = row | {
                    "replayed_share": row["share_of_limit"],
                    "replayed_met": row["share_of_limit"] >= LEAST_SHARE,
                }
                groups.setdefault(what, []).append((judged, "share"))
        rows += [[report["hardware"]["gpu"], *_summary(what, judged)] for what, judged in groups.items()]
    return markdown(header, rows)


def softmax_passes() -> str:
    """Return how many times as fast as FlexAttention our softmax is over the same blocks, in each pass, by GPU and size."""
    rows = []
    for report in reports():
        times = {
            (row["n"], row["dimension"], row["attention"], row["part"]): row["replayed"]
            for row in report["rows"]
            if row["attention"] in ("ours, softmax", "flex")
        }
        for n, dimension in sorted({key[:2] for key in times if key[2] == "flex"}):
            forward, both = (
                [times[n, dimension, name, part] for name in ("flex", "ours, softmax")] for part in ("forward", "both")
            )
            backward = [whole - first for whole, first in zip(both, forward, strict=True)]
            ratios = [f"{flex / ours:.2f}" for flex, ours in (forward, backward, both)]
            rows.append([report["hardware"]["gpu"], f"{n:,}", str(dimension), *ratios])
    return markdown(["GPU", "n", "D", "forward", "backward", "together"], rows)


def adasplash_claims() -> str:
    """Return a row per GPU and claim of AdaSplash-2: its verdict, and the range of the numbers that it was judged on."""
    rows = []
    for report in _adasplash():
        speed, iterations = report["verdicts"]
        ratios = [row["ratio"] for row in speed["judged"]]
        excess = [row["adasplash-2, 2"] / row["ours"] for row in iterations["judged"]]
        change = max(abs(row["adasplash-2, 2"] / row["adasplash-2, 1"] - 1) for row in iterations["judged"])
        gpu = report["hardware"]["gpu"]
        fast = f"{min(ratios):.2f} to {max(ratios):.2f} times as fast as FlashAttention-2"
        close = f"error {min(excess):.2f} to {max(excess):.2f} times ours, {change:.1%} apart after one iteration"
        for claim, found in ((speed, fast), (iterations, close)):
            met = sum(row["met"] for row in claim["judged"])
            rows.append([gpu, claim["claim"], claim["verdict"], f"{met} of {len(claim['judged'])}", found])
    return markdown(["GPU", "claim", "verdict", "settings that agree", "measured"], rows)


def adasplash_times() -> str:
    """Return a row per GPU, size and block sparsity: milliseconds of both passes, causal, replayed from a CUDA graph."""
    names = {
        "flash": "SDPA flash",
        "adasplash-2": "AdaSplash-2",
        "ours": "ours, all blocks",
        "ours, its tiles": "ours, AdaSplash-2's tiles",
    }
    rows = []
    for report in _adasplash():
        sizes: dict[tuple, dict[str, dict]] = {}
        for row in report["times"]:
            sizes.setdefault((row["n"], row["dimension"], row["attended"]), {})[row["attention"]] = row
        for (n, dimension, _), found in sizes.items():
            cells = [f"{found[name]['replayed']:.2f}" for name in names]
            sparsity = f"{found['flash']['sparsity']:.0%}"
            rows.append([report["hardware"]["gpu"], f"{n:,}", str(dimension), sparsity, *cells])
    return markdown(["GPU", "n", "D", "block sparsity", *names.values()], rows)


def _adasplash() -> list[dict]:
    """Return the report on AdaSplash-2 of each GPU, in the order of the file names."""
    return [json.loads(path.read_text()) for path in sorted(Path(FOLDER).glob("adasplash-*.json"))]


def _summary(what: tuple[str, int, str], judged: list[tuple[dict, str]]) -> list[str]:
    """Return a target's cells; values are replayed from a CUDA graph, except those of calls that take too long for it."""
    target, dimension, least = what
    values = sorted(
        (row.get(f"replayed_{name}", row.get(name)), row.get("replayed_met", row.get("met")), _size(row))
        for row, name in judged
    )
    layout = "{:.0%}" if judged[0][1] == "share" else "{:.2f}"
    ends = [f"{layout.format(value)} at {size}" for value, _, size in (values[0], values[-1])]
    called = [row["met"] for row, _ in judged if "met" in row]
    return [target, str(dimension), least, _count([met for _, met, _ in values]), _count(called), *ends]


def _count(met: list[bool]) -> str:
    """Return how many targets are met, in bold if all are."""
    text = f"{sum(met)} of {len(met)}" if met else ""
    return f"**{text}**" if met and all(met) else text


def _size(row: dict) -> str:
    return f"{row['n']:,}{', causal' if row['causal'] else ''}, {row['block']}"


def _milliseconds(row: dict | None) -> str:
    """Format the time replayed from a CUDA graph, and as called from Python if that takes over 10 % longer."""
    if row is None or row["milliseconds"] is None:
        return ""
    called, replayed = row["milliseconds"], row["replayed"]
    if replayed is None:
        return f"({called:.2f})"
    return f"{replayed:.2f}" + (f" ({called:.2f})" if called > 1.1 * replayed else "")
