"""Speed on CPUs, from the text output of the scripts in benchmarks."""

import re

from replication.files.paths import ROOT
from replication.tables.markers import markdown

FOLDER = ROOT / "benchmarks" / "results"
NUMBER = r"([\d.]+)"


def speed() -> str:
    """Return our time, a peer's time in the same run, and the speedup, a row per machine."""
    rows = [*_normalizers(), *_sweep(), *_decoding(), *_blocks()]
    return markdown(["", "machine", "ours", "peer", "times as fast"], rows)


def found(pattern: str, text: str, name: str) -> re.Match:
    """Return the first match of a multi-line pattern.

    Raises
    ------
    ValueError
        If there is no match; the message names the file.
    """
    match = re.search(pattern, text, flags=re.MULTILINE)
    if match is None:
        raise ValueError(f"{name}: must contain a line like {pattern}")
    return match


def _sections(name: str, first: str) -> list[tuple[str, str]]:
    """Return the machine and text of each run in a file; a run's first line names the machine."""
    parts = re.split(rf"^(?=.*{first})", (FOLDER / name).read_text(), flags=re.MULTILINE)
    return [(part.split(", torch")[0], part) for part in parts if part]


def _normalizers() -> list[list[str]]:
    rows = []
    for machine, text in _sections("normalizers.txt", ", torch"):
        for shape, ours, theirs, ratio, differ, of in re.findall(
            rf"^entmax15 +(\(.*?\)) +{NUMBER} +{NUMBER} +{NUMBER} +(\d+) of (\d+)", text, flags=re.MULTILINE
        ):
            peer = f"{theirs} ms, `entmax` package; {differ} of {int(of):,} edges differ"
            rows.append([f"`entmax15` forward + backward, {shape}", machine, f"{ours} ms", peer, ratio])
        if "top-8" in text:
            shape = found(r"^attention (\(.*?\))", text, "normalizers.txt")[1]
            softmax = float(found(rf"^softmax +{NUMBER}", text, "normalizers.txt")[1])
            ours = float(found(rf"^top-8 +{NUMBER}", text, "normalizers.txt")[1])
            what = f"top-8 attention forward + backward, {shape}"
            rows.append([what, machine, f"{ours} ms", f"{softmax} ms, softmax attention", f"{softmax / ours:.2f}"])
    return rows


def _sweep() -> list[list[str]]:
    (machine, text), *_ = _sections("recall_sweep.txt", ", torch")
    members, windows, ours = found(rf"(\d+) members x (\d+) windows: {NUMBER} ms", text, "recall_sweep.txt").groups()
    single = float(found(rf"^ +{NUMBER}  \w+ \{{", text, "recall_sweep.txt")[1])
    what = f"recall sweep of a sentence, {members} predictors x {windows} windows"
    peer = f"{single} ms, its most expensive predictor alone"
    return [[what, machine, f"{ours} ms", peer, f"{single / float(ours):.2f}"]]


def _decoding() -> list[list[str]]:
    (machine, text), *_ = _sections("masked_decoding.txt", ", torch")
    seconds = {
        name: float(found(rf"^{name} +{NUMBER} s", text, "masked_decoding.txt")[1])
        for name in ("entmax, unmasked", "stock fairseq, softmax", "k-means, 8 clusters")
    }
    ours = seconds.pop("k-means, 8 clusters")
    what = "beam search under k-means, 8 clusters"
    return [[what, machine, f"{ours} s", f"{time} s, {name}", f"{time / ours:.2f}"] for name, time in seconds.items()]


def _blocks() -> list[list[str]]:
    rows = []
    for machine, text in _sections("block_sparse_cpu.txt", ", torch"):
        n, share = found(rf"^n = (\d+), {NUMBER}% of the blocks", text, "block_sparse_cpu.txt").groups()
        dense, sparse = (
            found(rf"^{name} +{NUMBER} ms +{NUMBER} MB", text, "block_sparse_cpu.txt").groups()
            for name in ("dense", "block-sparse")
        )
        what = f"block-sparse entmax attention, forward + backward, n = {n}, {share} % of the blocks"
        ratio = f"{float(dense[0]) / float(sparse[0]):.1f}"
        cells = [f"{time} ms, {memory} MB" for time, memory in (sparse, dense)]
        rows.append([what, machine, cells[0], f"{cells[1]}, dense entmax attention", ratio])
    return rows
