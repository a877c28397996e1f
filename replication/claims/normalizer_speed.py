"""What Explicit Sparse Transformer claims about speed (its Table 25).

Rivals have two implementations, this repository's and the entmax package's: the better one decides, and both are named.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from replication.bleu import COUNTS
from replication.claims.finding import Finding, Test
from replication.claims.scores import Units, bleu, effect, over_seeds
from replication.files.reading import read_table
from replication.timing.repeats import note_of, repeats

#: Other sparse attentions.
RIVALS = ["sparsemax", "entmax15", "entmax_alpha"]


def _table(folder: Path) -> pd.DataFrame:
    return read_table(folder / "speed.csv").set_index(["contender", "implementation"])


def _times_as_fast(column: str, rival: str, folder: Path) -> Finding:
    """Top-k's speed by that of each implementation of the rival, repeat by repeat."""
    table = _table(folder)
    speeds = table[column].map(repeats)
    (own,), (softmax,) = speeds.loc["topk"], speeds.loc["softmax"]
    # Contenders took turns: what disturbed one repeat disturbed all of them.
    return Finding(
        [over_seeds(f"top-k / {whose}'s {rival}", own / other, "repeat") for whose, other in speeds.loc[rival].items()],
        [f"softmax is {np.mean(softmax / own):.2f} times as fast as top-k", *note_of(pd.DataFrame(speeds.to_dict()))],
    )


def _bleu(folder: Path) -> Finding:
    """Top-k's BLEU above that of every other sparse attention, in each of its implementations.

    One model is trained with each, so sentences alone decide nothing.
    """
    found = _table(folder)["bleu"]
    if (folder / "sentences.parquet").exists():
        counts = (
            read_table(folder / "sentences.parquet").set_index(["contender", "implementation", "sentence"]).sort_index()
        )
        scores = {whose: bleu(counts.loc[whose, COUNTS].to_numpy()) for whose in found.index}
        (own,) = (score for (name, _), score in scores.items() if name == "topk")
        units = Units(counts.index.get_level_values("sentence").nunique(), "sentences")
        return Finding(
            [
                effect(f"top-k - {whose}'s {name}", (own - score)[:, None], "model", units)
                for (name, whose), score in scores.items()
                if name in RIVALS
            ]
        )
    return Finding(
        [
            over_seeds(f"top-k - {whose}'s {name}", [found["topk"].item() - value], "model")
            for (name, whose), value in found.loc[RIVALS].items()
        ]
    )


DECODE, TRAIN = "decode_repeats", "train_repeats"
TESTS: dict[str, Test] = {
    "est-speed-inference-sparsemax": partial(_times_as_fast, DECODE, "sparsemax"),
    "est-speed-inference-entmax-alpha": partial(_times_as_fast, DECODE, "entmax_alpha"),
    "est-speed-training-sparsemax": partial(_times_as_fast, TRAIN, "sparsemax"),
    "est-speed-bleu": _bleu,
}
