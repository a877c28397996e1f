"""Explicit Sparse Transformer's claims about speed (its Table 25).

Each rival has two implementations, this repository's and the entmax package's. The better one decides, and both are listed.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from replication.claims.finding import Finding, Test
from replication.claims.scores import Units, bleu, effect, over_seeds
from replication.files.reading import read_table
from replication.results.bleu import COUNTS
from replication.timing.repeats import note_of, repeats

#: Sparse normalisers to which top-k is compared.
RIVALS = ["sparsemax", "entmax15", "entmax_alpha"]


def _table(folder: Path) -> pd.DataFrame:
    return read_table(folder / "speed.csv").set_index(["contender", "implementation"])


def _times_as_fast(column: str, rival: str, folder: Path) -> Finding:
    """Return top-k's speed relative to each implementation of the rival, paired by repeat."""
    table = _table(folder)
    speeds = table[column].map(repeats)
    (top_k,), (softmax,) = speeds.loc["topk"], speeds.loc["softmax"]
    # Contenders take turns within a repeat, so a disturbance affects all of them, and ratios are paired by repeat.
    return Finding(
        [
            over_seeds(f"top-k / {whose}'s {rival}", top_k / other, "repeat")
            for whose, other in speeds.loc[rival].items()
        ],
        [f"softmax is {np.mean(softmax / top_k):.2f} times as fast as top-k", *note_of(pd.DataFrame(speeds.to_dict()))],
    )


def _bleu(folder: Path) -> Finding:
    """Return top-k's BLEU gain over each implementation of the other sparse normalisers.

    There is one model for each, so the interval is unknown, even with resampled sentences.
    """
    table = _table(folder)["bleu"]
    if (folder / "sentences.parquet").exists():
        counts = (
            read_table(folder / "sentences.parquet").set_index(["contender", "implementation", "sentence"]).sort_index()
        )
        scores = {whose: bleu(counts.loc[whose, COUNTS].to_numpy()) for whose in table.index}
        (top_k,) = (score for (name, _), score in scores.items() if name == "topk")
        units = Units(counts.index.get_level_values("sentence").nunique(), "sentences")
        return Finding(
            [
                effect(f"top-k - {whose}'s {name}", (top_k - score)[:, None], "model", units)
                for (name, whose), score in scores.items()
                if name in RIVALS
            ]
        )
    return Finding(
        [
            over_seeds(f"top-k - {whose}'s {name}", [table["topk"].item() - value], "model")
            for (name, whose), value in table.loc[RIVALS].items()
        ]
    )


DECODE, TRAIN = "decode_repeats", "train_repeats"
TESTS: dict[str, Test] = {
    "est-speed-inference-sparsemax": partial(_times_as_fast, DECODE, "sparsemax"),
    "est-speed-inference-entmax-alpha": partial(_times_as_fast, DECODE, "entmax_alpha"),
    "est-speed-training-sparsemax": partial(_times_as_fast, TRAIN, "sparsemax"),
    "est-speed-bleu": _bleu,
}
