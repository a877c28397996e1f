"""Speed of whole models that visit only some blocks, from the results of benchmarks/model_speed.py."""

import json
from itertools import pairwise

from replication.files.paths import ROOT
from replication.tables.markers import markdown

RESULTS = ROOT / "benchmarks" / "results"
#: Reports whose dense times are those of the same encoder under PyTorch's softmax, for reports from before it was measured too.
SAME_ENCODER = {"minilm-entmax": "minilm"}
SDPA = "SDPA"
#: Learned positions of the encoders, which are repeated in longer sequences, as `benchmarks/pretrained.py` does.
POSITIONS = {"minilm": 512, "minilm-entmax": 512}


def times(model: str) -> str:
    """Return a row per length: milliseconds of a forward pass, dense and over some blocks, and the shares to compare."""
    report = _report(model)
    dense = "dense, SDPA" if report["alpha"] == 1 else "dense"
    names = [name for name in report["lengths"][0]["milliseconds"] if name != SDPA]
    peer = _sdpa(model)
    heading = [
        "n",
        *(["SDPA, softmax"] if peer else []),
        *(dense if name == "dense" else f"{_share(name):.0%} of the blocks" for name in names),
        "break-even share",
        *(f"needed for {target}" for target in report["lengths"][0]["best_shares"]),
    ]
    rows = [
        [
            f"{row['n']:,}",
            *([f"{peer[row['n']]:,.0f}"] if peer else []),
            *(f"{row['milliseconds'][name]:,.0f}" for name in names),
            break_even(row["milliseconds"]),
            *(f"{share:.0%}" for share in row["best_shares"].values()),
        ]
        for row in report["lengths"]
    ]
    machine, rounds = report["machine"], report["rounds"]
    threads = "one thread" if machine["threads"] == 1 else f"{machine['threads']} threads"
    timed = "one round" if rounds == 1 else f"medians of {rounds} rounds"
    caption = f"{machine['processor']}, {threads}, torch {machine['torch']}; {timed}.{_repeated(model, ' ')}"
    return f"{caption}\n\n{markdown(heading, rows)}"


def ratios(model: str) -> str:
    """Return a row per predictors and recall target, and a column per length: speed against dense attention, visited share.

    Under entmax, the speed against the same encoder with PyTorch's softmax stands between both.
    """
    lengths, peer = _report(model)["lengths"], _sdpa(model)
    rows = {}
    for row in lengths:
        for tuned in row["targets"]:
            cells = rows.setdefault((tuned["predictors"], f"{tuned['target']}"), [])
            softmax = f", {_bold(peer[row['n']] / tuned['milliseconds'])}" if peer else ""
            cells.append(f"{_faster(row, tuned)}{softmax} at {tuned['share']:.0%}")
    heading = ["predictors", "target", *(f"n = {row['n']:,}" for row in lengths)]
    table = markdown(heading, [[*settings, *cells] for settings, cells in sorted(rows.items())])
    return _repeated(model, end="\n\n") + table


def _repeated(model: str, start: str = "", end: str = "") -> str:
    """Return a sentence for a caption if a model was timed at lengths that it was not made for."""
    if model not in POSITIONS:
        return ""
    return f"{start}The encoder has {POSITIONS[model]} positions; beyond, they are repeated.{end}"


def recalls(model: str) -> str:
    """Return a row per length, predictors and recall target: visited share of the blocks, speed, recall and drift."""
    rows, peer = [], _sdpa(model)
    for row in _report(model)["lengths"]:
        for tuned in row["targets"]:
            rows.append(
                [
                    f"{row['n']:,}",
                    tuned["predictors"],
                    f"{tuned['target']}",
                    f"{tuned['share']:.0%}",
                    f"{tuned['milliseconds']:,.0f}",
                    _faster(row, tuned),
                    *([_bold(peer[row["n"]] / tuned["milliseconds"])] if peer else []),
                    f"{tuned['recall']:.3f}",
                    f"{tuned['drift']:.1e}",
                ]
            )
    against = ["against SDPA"] if peer else []
    heading = ["n", "predictors", "target", "visited", "ms", "times as fast", *against, "recall", "drift"]
    return _repeated(model, end="\n\n") + markdown(heading, rows)


def tuning(*models: str) -> str:
    """Return a row per model, predictors and recall target: what `sparsify` found."""
    rows = []
    for report in map(_report, models):
        for tuned in report["tuning"]:
            dense = f"{tuned['dense_heads']} of {tuned['heads']}"
            found = [f"{tuned['sequences']}", dense, f"{tuned['sparsity']:.2f}"]
            rows.append([report["model"], tuned["predictors"], f"{tuned['target']}", *found])
    heading = ["model", "predictors", "target", "sequences", "dense heads", "mean sparsity"]
    return markdown(heading, rows)


def break_even(milliseconds: dict[str, float]) -> str:
    """Return the share of the blocks that takes as long as dense attention, on a line between the nearest measured shares.

    Examples
    --------
    >>> break_even({"dense": 30.0, "blocks 0.1": 10.0, "blocks 0.5": 50.0})
    '30%'
    >>> break_even({"dense": 5.0, "blocks 0.1": 10.0, "blocks 0.5": 50.0})
    'below 10%'
    """
    measured = [(_share(name), time) for name, time in milliseconds.items() if name not in ("dense", SDPA)]
    dense = milliseconds["dense"]
    if dense < measured[0][1]:
        return f"below {measured[0][0]:.0%}"
    for (share, time), (next_share, next_time) in pairwise(measured):
        if time <= dense < next_time:
            return f"{share + (next_share - share) * (dense - time) / (next_time - time):.0%}"
    return "all"


def _faster(row: dict, tuned: dict) -> str:
    """Return how many times as fast as dense attention a tuned model is, in bold if it is faster."""
    return _bold(row["milliseconds"]["dense"] / tuned["milliseconds"])


def _bold(faster: float) -> str:
    """Return how many times as fast something is, in bold if it is faster."""
    return f"**{faster:.2f}**" if faster > 1 else f"{faster:.2f}"


def _sdpa(model: str) -> dict[int, float]:
    """Return the milliseconds of the same encoder under PyTorch's softmax by length; none if that is the dense column."""
    report = _report(model)
    measured = {row["n"]: row["milliseconds"][SDPA] for row in report["lengths"] if SDPA in row["milliseconds"]}
    if measured or model not in SAME_ENCODER:
        return measured
    return {row["n"]: row["milliseconds"]["dense"] for row in _report(SAME_ENCODER[model])["lengths"]}


def _share(name: str) -> float:
    """Return the share of a run's name, such as ``blocks 0.1``."""
    return float(name.removeprefix("blocks "))


def _report(model: str) -> dict:
    return json.loads((RESULTS / f"model_speed_{model}.json").read_text())
