"""Attention and an encoder on a CPU beside PyTorch's, from the results of benchmarks/cpu_peers.py and cpu_encoder.py."""

import json

from replication.files.paths import ROOT
from replication.tables.markers import markdown

RESULTS = ROOT / "benchmarks" / "results" / "cpu_peers.json"
ENCODER = RESULTS.with_name("cpu_encoder.json")
#: The most that the ratio of an encoder's times may be, by pass and number of tokens, and that of its memory.
ENCODER_TARGETS = {"forward": {512: 1.0, 2048: 0.75}, "both passes": {512: 0.9, 2048: 0.65}}
MOST_MEMORY = 1.2
#: The most that the time beside a busy core may be, in times alone.
MOST_BUSY = 2.5
#: By name: the part of the report, both contenders, and the most that the ratio of their times may be (by number of tokens).
TARGETS = {
    "block-sparse entmax / FlexAttention": ("sparse", "entmax", "FlexAttention", 0.6),
    "block-sparse softmax / FlexAttention": ("sparse", "softmax", "FlexAttention", 1.0),
    "block-sparse entmax: both passes / forward pass": ("sparse", "entmax, both passes", "entmax", 3.0),
    "decoding, entmax / SDPA": ("decoding", "entmax", "SDPA", 0.7),
    "dense entmax / SDPA, both passes": ("dense", "entmax", "SDPA", {512: 1.0, 1024: 0.6, 4096: 0.35}),
}
#: Number of threads, the time to compare, and its name. Processor time of one thread is robust against other work.
CLOCKS = {1: ("cpu_milliseconds", "one thread, processor time"), 2: ("milliseconds", "two threads, time")}


def milliseconds() -> str:
    """Return a row per number of tokens with the time of each attention."""
    report = json.loads(RESULTS.read_text())
    machine = report["machine"]
    heading = f"{machine['processor']}, one thread, torch {machine['torch']}; medians of {report['rounds']} rounds."
    rows = [row for row in report["rows"] if row["threads"] == 1]
    return "\n\n".join([heading, *(_table([row for row in rows if row["part"] == x], x) for x in ("sparse", "dense"))])


def _table(rows: list[dict], part: str) -> str:
    names = list(dict.fromkeys(row["attention"] for row in rows))
    cells = {
        n: [f"{row['cpu_milliseconds']:.1f}" for row in rows if row["n"] == n]
        for n in dict.fromkeys(row["n"] for row in rows)
    }
    return markdown([f"n, {part}", *names], [[f"{n:,}", *of_n] for n, of_n in cells.items()])


def targets() -> str:
    """Return a row per target and number of tokens with the measured ratios; bold if the target is met."""
    report = json.loads(RESULTS.read_text())
    rows = []
    for words, (part, ours, peer, most) in TARGETS.items():
        for n in dict.fromkeys(row["n"] for row in report["rows"] if row["part"] == part):
            limit = most[n] if isinstance(most, dict) else most
            rows.append([words, f"{n:,}", f"at most {limit}"])
            for threads, (clock, _) in CLOCKS.items():
                times = {
                    row["attention"]: row[clock]
                    for row in report["rows"]
                    if (row["part"], row["n"], row["threads"]) == (part, n, threads)
                }
                ratio = times[ours] / times[peer]
                rows[-1].append(f"**{ratio:.2f}**" if ratio <= limit else f"{ratio:.2f}")
    return markdown(["ratio", "n", "target", *(name for _, name in CLOCKS.values())], rows)


def busy() -> str:
    """Return how many times as long block-sparse attention takes while another process keeps a core busy, two threads."""
    rows = [row for row in json.loads(RESULTS.read_text())["rows"] if row["threads"] == max(CLOCKS)]
    times = {(row["part"], row["n"], row["attention"]): row["milliseconds"] for row in rows}
    cells: dict[str, list[str]] = {}
    for part, n, name in times:
        if part == "busy core":
            ratio = times[part, n, name] / times["sparse", n, name]
            cells.setdefault(f"{n:,}", []).append(f"**{ratio:.2f}**" if ratio <= MOST_BUSY else f"{ratio:.2f}")
    names = dict.fromkeys(name for part, _, name in times if part == "busy core")
    return markdown(["n", *names], [[n, *ratios] for n, ratios in cells.items()])


def supports() -> str:
    """Return how the ratio to SDPA grows with the share of the keys that have weight: dense, both passes."""
    times: dict[float, dict[int, dict[str, float]]] = {}
    for row in json.loads(RESULTS.read_text())["rows"]:
        if row["part"] == "supports":
            of_support = times.setdefault(row["support"], {}).setdefault(row["threads"], {})
            of_support[row["attention"]] = row[CLOCKS[row["threads"]][0]]
    cells = [
        [f"{support:.1%}", *(f"{of_share[n]['entmax'] / of_share[n]['SDPA']:.2f}" for n in CLOCKS)]
        for support, of_share in sorted(times.items())
    ]
    return markdown(["keys with weight", *(name for _, name in CLOCKS.values())], cells)


def encoder() -> str:
    """Return a row per pass and number of tokens with the ratios of entmax to SDPA: of times, and of peak memory."""
    report, rows = json.loads(ENCODER.read_text()), []
    for part, limits in ENCODER_TARGETS.items():
        for n, limit in limits.items():
            here = [x for x in report["rows"] if (x["part"], x["n"]) == (f"encoder, {part}", n)]
            ratios = [
                _ratio({x["attention"]: x[clock] for x in here if x["threads"] == threads}, limit)
                for threads, (clock, _) in CLOCKS.items()
            ]
            memory = [x for x in report["memory"] if (x["part"], x["n"]) == (f"encoder, {part}", n)]
            ratios.append(_ratio({x["attention"]: x["mebibytes"] for x in memory}, MOST_MEMORY))
            rows.append([part, f"{n:,}", f"at most {limit}", *ratios])
    machine, note = report["machine"], f"; {report['note']}" if report["note"] else ""
    heading = (
        f"{machine['processor']}, torch {machine['torch']}; medians of {report['rounds']} rounds{note}. "
        f"{report['support']:.1%} of the keys have weight at n = 512."
    )
    memory = f"peak memory (at most {MOST_MEMORY})"
    return f"{heading}\n\n{markdown(['pass', 'n', 'target', *(name for _, name in CLOCKS.values()), memory], rows)}"


def training() -> str:
    """Return one sentence: the share of SDPA's time that an encoder's training step takes under entmax."""
    report = json.loads(ENCODER.read_text())
    times = {
        (x["n"], x["attention"]): x["cpu_milliseconds"]
        for x in report["rows"]
        if (x["part"], x["threads"]) == ("encoder, both passes", 1)
    }
    ratios = [f"{times[n, 'entmax'] / times[n, 'SDPA']:.0%} at {n:,} tokens" for n in ENCODER_TARGETS["both passes"]]
    return (
        "**Train with entmax: exact, and faster than PyTorch's softmax on a CPU where few keys get weight** "
        "([tutorial](notebooks/tutorial.ipynb)): where the encoder of `make results` gives weight to "
        f"{report['support']:.1%} of the keys, both passes take {' and '.join(ratios)} of softmax's time "
        "([measured](docs/speed.md#entmax-against-pytorchs-softmax-on-a-cpu))."
    )


def _ratio(of: dict[str, float], limit: float) -> str:
    """Return the ratio of entmax to SDPA, in bold if it is within a limit."""
    ratio = of["entmax"] / of["SDPA"]
    return f"**{ratio:.2f}**" if ratio <= limit else f"{ratio:.2f}"
