"""What Explicit Sparse Transformer claims about speed (its Table 25).

Rivals have two implementations, this repository's and the entmax package's: the better one decides, and both are named.
"""

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path

import pandas as pd

from replication.claims.finding import Finding, Test

TESTS: dict[str, Test] = {}

#: "2x faster than sparsemax", "10x faster than Entmax-alpha".
TWICE, TEN_TIMES = 2.0, 10.0
#: Other sparse attentions.
RIVALS = ["sparsemax", "entmax15", "entmax_alpha"]


def _measured(test: Callable[[pd.DataFrame], Finding]) -> Test:
    """A test of the table by contender and implementation, where there is one."""

    @wraps(test)
    def on_folder(folder: Path) -> Finding | None:
        path = folder / "speed.csv"
        return test(pd.read_csv(path).set_index(["contender", "implementation"])) if path.exists() else None

    return on_folder


def _times_as_fast(column: str, rival: str, least: float, table: pd.DataFrame) -> Finding:
    """Top-k's speed is at least so many times that of the rival's faster implementation."""
    ratio = table.loc["topk", column].item() / table.loc[rival, column]
    in_words = ", ".join(f"{value:.2f} times {whose}'s" for whose, value in ratio.items())
    softmax = table.loc["softmax", column].item() / table.loc["topk", column].item()
    numbers = f"top-k is {in_words} {rival}; softmax {softmax:.2f} times top-k"
    return Finding(bool(ratio.min() >= least), [ratio.min()], numbers)


def _bleu(table: pd.DataFrame) -> Finding:
    """Top-k's BLEU is at least that of every other sparse attention, in the better of its implementations."""
    own, others = table.loc["topk", "bleu"].item(), table["bleu"].loc[RIVALS]
    in_words = ", ".join(f"{name} ({whose}) {value:.2f}" for (name, whose), value in others.items())
    softmax = table.loc["softmax", "bleu"].item()
    return Finding(
        bool(own >= others.max()), [own - others.max()], f"top-k {own:.2f}; {in_words}; softmax {softmax:.2f}"
    )


TESTS |= {
    name: _measured(test)
    for name, test in {
        "est-speed-inference-sparsemax": partial(_times_as_fast, "decode_tokens_per_second", "sparsemax", TWICE),
        "est-speed-inference-entmax-alpha": partial(
            _times_as_fast, "decode_tokens_per_second", "entmax_alpha", TEN_TIMES
        ),
        "est-speed-training-sparsemax": partial(_times_as_fast, "train_tokens_per_second", "sparsemax", TWICE),
        "est-speed-bleu": _bleu,
    }.items()
}
