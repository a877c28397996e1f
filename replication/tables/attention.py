"""Block-sparse entmax attention on GPUs, from the results of benchmarks/attention.py."""

import json
from pathlib import Path

from replication.files.paths import ROOT
from replication.tables.markers import markdown

FOLDER = ROOT / "benchmarks" / "results"
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
    return f"{device} {report.get('note', '')}".strip()


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
        cells.append([f"{n}{', causal' if causal else ''}", str(dimension), *times])
    return markdown(["n", "D", *columns], cells)


def targets() -> str:
    """Return the speedup over each peer at a tenth of the blocks, and the share of predicting them, by GPU and size."""
    header = ["GPU", "n", "D", "blocks of", "forward and backward", "target", "replayed", "as called"]
    rows = []
    for report in reports():
        gpu = report["hardware"]["gpu"]
        for row in report["targets"]:
            what = f"times as fast as {PEERS[row['peer']]}"
            rows.append([gpu, *_size(row), what, f"at least {row['target']:g}", *_judged(row, "ratio", "{:.2f}")])
        for row in report["prediction"]:
            what = "predicting the blocks, share of the attention"
            rows.append([gpu, *_size(row), what, "at most 15 %", *_judged(row, "share", "{:.0%}")])
        for row in report["rows"]:
            if (row["attention"], row.get("part"), row["density"]) == ("ours", "both", 0.1) and "share_of_limit" in row:
                what = "share of the speed of the matrix products alone"
                rows.append([gpu, *_size(row), what, "at least 50 %", f"{row['share_of_limit']:.0%}", ""])
    return markdown(header, rows)


def _size(row: dict) -> list[str]:
    return [f"{row['n']}{', causal' if row['causal'] else ''}", str(row["dimension"]), str(row["block"])]


def _judged(row: dict, name: str, layout: str) -> list[str]:
    """Format a target's value, replayed and as called; bold if the target is met."""
    return [
        f"{'**' * row[kind + 'met']}{layout.format(row[kind + name])}{'**' * row[kind + 'met']}"
        if kind + name in row
        else ""
        for kind in ("replayed_", "")
    ]


def _milliseconds(row: dict | None) -> str:
    """Format the time replayed from a CUDA graph, and as called from Python if that takes over 10 % longer."""
    if row is None or row["milliseconds"] is None:
        return ""
    called, replayed = row["milliseconds"], row["replayed"]
    if replayed is None:
        return f"({called:.2f})"
    return f"{replayed:.2f}" + (f" ({called:.2f})" if called > 1.1 * replayed else "")
