"""Explicit Sparse Transformer's claims about image captioning; tests get the task's folder."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from replication.claims.finding import Finding, Test
from replication.claims.scores import Units, bleu, effect, means
from replication.results.bleu import COUNTS
from replication.results.measurements import read_captioning

#: Function that scores one model's captions, ``[1 + R]``.
Score = Callable[[pd.DataFrame], np.ndarray]


def _bleu(captions: pd.DataFrame) -> np.ndarray:
    return bleu(captions[COUNTS].to_numpy())


def _mean(column: str, captions: pd.DataFrame) -> np.ndarray:
    return means(captions[column].to_numpy(), np.ones(len(captions)))


def _gained(name: str, score: Score, folder: Path) -> Finding:
    """Return the gain of each top-k model over softmax, paired by seed."""
    captions = read_captioning(folder, "captions.parquet")
    scores = {run: score(table) for run, table in captions.groupby(["model", "seed"])}
    of_softmax = {seed: score for (model, seed), score in scores.items() if model == "softmax"}
    effects = []
    for model in sorted({model for model, _ in scores} - {"softmax"}):
        gained = [
            value - of_softmax[seed] for (name, seed), value in scores.items() if name == model and seed in of_softmax
        ]
        units = Units(captions["image"].nunique(), "images")
        if gained:
            effects.append(effect(f"{model} - softmax, {name}", np.stack(gained, axis=1), "model", units))
    return Finding(effects)


TESTS: dict[str, Test] = {
    "est-captions-bleu": partial(_gained, "BLEU-4", _bleu),
    "est-captions-meteor": partial(_gained, "METEOR", partial(_mean, "meteor")),
    "est-captions-cider": partial(_gained, "CIDEr", partial(_mean, "cider")),
}
