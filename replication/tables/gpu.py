"""Decoding and whole encoders on a GPU, from the JSON lines of the scripts in benchmarks/."""

import json
from collections.abc import Iterable

from replication.files.paths import ROOT
from replication.tables.markers import markdown

FOLDER = ROOT / "benchmarks" / "results"
PARTS = {"forward": "forward", "both": "forward and backward"}


def encoder() -> str:
    """Return a row per length and pass: milliseconds of an encoder, dense and by alpha and share of the blocks."""
    hardware, rows = _read("encoder")
    runs = _in_order((row["attention"], row["alpha"], row["share"]) for row in rows)
    names = ["dense, SDPA" if name == "sdpa" else f"alpha = {alpha:g}, {share:.0%}" for name, alpha, share in runs]
    times = {(row["n"], row["part"], row["attention"], row["alpha"], row["share"]): row["milliseconds"] for row in rows}
    cells = [
        [f"{n:,}", PARTS[part], *(_in_bold_if_faster(times[n, part, *run], times[n, part, *runs[0]]) for run in runs)]
        for n, part in sorted({(row["n"], row["part"]) for row in rows}, key=lambda size: (size[0], size[1] == "both"))
    ]
    return f"{hardware}\n\n{markdown(['n', 'passes', *names], cells)}"


def default_encoder() -> str:
    """Return a row per length and pass of the default's encoder: milliseconds and megabytes of each attention."""
    hardware, rows = _read("gpu_encoder")
    names = _in_order((row["attention"],) for row in rows if "attention" in row)
    by_size = {}
    for row in rows:
        if "attention" in row:
            by_size.setdefault((row["n"], row["part"]), {})[row["attention"]] = row
    cells = []
    for (n, part), found in by_size.items():
        softmax, entmax, weights = (found[name] for (name,) in names)
        times = [f"{row['milliseconds']:,.1f}" for row in (softmax, entmax, weights)]
        ratio = f"{softmax['milliseconds'] / entmax['milliseconds']:.2f}"
        memory = [f"{row['megabytes']:,.0f}" for row in (softmax, entmax, weights)]
        cells.append([part, f"{n:,}", *times, ratio, *memory])
    milliseconds, megabytes = ([f"{unit}, {name}" for (name,) in names] for unit in ("ms", "MB"))
    header = ["pass", "n", *milliseconds, "SDPA's time / entmax's", *megabytes]
    return f"{hardware}\n\n{markdown(header, cells)}"


def page_selection() -> str:
    """Return a row per kind of keys, scale and page size: pages and weights that EntmaxKV's rule selects, and microseconds."""
    hardware, rows = _read("page_selection")
    settings = _in_order((row["keys"], row["scale"]) for row in rows if "keys" in row)
    cells = []
    for setting in settings:
        of_setting = [row for row in rows if (row.get("keys"), row.get("scale")) == setting]
        full = {row["attention"]: row for row in of_setting if "page" not in row}
        for page in sorted({row["page"] for row in of_setting if "page" in row}):
            found = {row["attention"]: row for row in of_setting if row.get("page") == page}
            row = found["select"]
            shares = [f"{row['support']:.3%}", f"{row['share']:.0%}", f"{row['kept']:.1%}", f"{row['error']:.3f}"]
            parts = [found[name] for name in ("select", "ours, selected pages", "select and decode")]
            times = [f"{x['graph_microseconds']:,.0f}" for x in (*parts, full["ours, all keys"], full["sdpa"])]
            cells.append([setting[0], f"{setting[1]:g}", str(page), *shares, *times])
    header = ["keys", "scale", "page", "keys with weight", "pages visited", "weight in them", "error of the output"]
    times = [f"µs, {name}" for name in ("selection", "decoding", "both", "all keys", "SDPA")]
    return f"{hardware}\n\n{markdown([*header, *times], cells)}"


def decoding() -> str:
    """Return a row per cache and share of its keys: microseconds of a call replayed from a CUDA graph, and as called."""
    hardware, rows = _read("decoding")
    rows = [row for row in rows if "n" in row]
    columns = {
        "alpha = 1.5": ("ours", 1.5),
        "softmax": ("ours", 1.0),
        "FlexAttention": ("flex", 1.0),
        "SDPA, all keys": ("sdpa", 1.0),
        "pages of 16, alpha = 1.5": ("ours, pages of 16", 1.5),
        "pages of 64, alpha = 1.5": ("ours, pages of 64", 1.5),
    }
    cells = []
    for n, batch in sorted({(row["n"], row["batch"]) for row in rows}):
        of_size = [row for row in rows if (row["n"], row["batch"]) == (n, batch)]
        for density in sorted({row["density"] for row in of_size}):
            times = {(row["attention"], row["alpha"]): row for row in of_size if row["density"] == density}
            cells.append(
                [f"{n:,}", str(batch), f"{density:.0%}", *(_microseconds(times.get(key)) for key in columns.values())]
            )
    return f"{hardware}\n\n{markdown(['n', 'sequences', 'keys', *columns], cells)}"


def _read(name: str) -> tuple[str, list[dict]]:
    """Return the GPU with its software, and the rows."""
    hardware, *rows = map(json.loads, (FOLDER / f"{name}.jsonl").read_text().splitlines())
    versions = hardware["versions"]
    heading = f"{hardware['gpu']}, CUDA {hardware['cuda']}, torch {versions['torch']}, triton {versions['triton']}."
    return heading, rows


def _in_order(values: Iterable[tuple]) -> list[tuple]:
    """Return the different values in order of appearance."""
    return list(dict.fromkeys(values))


def _in_bold_if_faster(milliseconds: float, peer: float) -> str:
    return f"**{milliseconds:.1f}**" if milliseconds < peer else f"{milliseconds:.1f}"


def _microseconds(row: dict | None) -> str:
    """Format the time replayed from a CUDA graph, and as called from Python if that takes over 10 % longer."""
    if row is None or "graph_microseconds" not in row:
        return "failed" if row and "error" in row else ""
    called, replayed = row["microseconds"], row["graph_microseconds"]
    return f"{replayed:,.0f}" + (f" ({called:,.0f})" if called > 1.1 * replayed else "")
