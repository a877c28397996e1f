"""Attention on a CPU beside PyTorch's, from the results of benchmarks/cpu_peers.py."""

import json

from replication.files.paths import ROOT
from replication.tables.markers import markdown

RESULTS = ROOT / "benchmarks" / "results" / "cpu_peers.json"
#: By name: the part of the report, both contenders, and the most that the ratio of their times may be (by number of tokens).
TARGETS = {
    "block-sparse softmax / FlexAttention": ("sparse", "softmax", "FlexAttention", 1.15),
    "block-sparse entmax / FlexAttention": ("sparse", "entmax", "FlexAttention", 1.4),
    "block-sparse entmax: both passes / forward pass": ("sparse", "entmax, both passes", "entmax", 3.0),
    "dense entmax / softmax, both passes": ("dense", "entmax", "softmax", {128: 1.3, 512: 1.15, 1024: 1.1}),
}


def milliseconds() -> str:
    """Return a row per number of tokens with the time of each attention."""
    report = json.loads(RESULTS.read_text())
    machine = report["machine"]
    heading = (
        f"{machine['processor']}, {machine['threads']} threads, torch {machine['torch']}; {report['rounds']} rounds."
    )
    return "\n\n".join([heading, *(_table(report[part], part) for part in ("sparse", "dense"))])


def _table(rows: list[dict], part: str) -> str:
    names = list(dict.fromkeys(row["attention"] for row in rows))
    cells = {
        n: [f"{row['milliseconds']:.1f}" for row in rows if row["n"] == n]
        for n in dict.fromkeys(row["n"] for row in rows)
    }
    return markdown([f"n, {part}", *names], [[f"{n:,}", *of_n] for n, of_n in cells.items()])


def targets() -> str:
    """Return a row per target and number of tokens with the measured ratio; bold if the target is met."""
    report = json.loads(RESULTS.read_text())
    rows = []
    for words, (part, ours, peer, most) in TARGETS.items():
        times = {(row["n"], row["attention"]): row["milliseconds"] for row in report[part]}
        for n in dict.fromkeys(n for n, _ in times):
            ratio, limit = times[n, ours] / times[n, peer], most[n] if isinstance(most, dict) else most
            rows.append([words, f"{n:,}", f"at most {limit}", f"**{ratio:.2f}**" if ratio <= limit else f"{ratio:.2f}"])
    return markdown(["ratio of times", "n", "target", "measured"], rows)
