"""What Explicit Sparse Transformer claims about image captioning; a test gets the folder of that task."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from replication.bleu import COUNTS
from replication.claims.finding import Finding, Test
from replication.claims.scores import Units, bleu, effect, means
from replication.results import read_captioning

#: Scores ``[1 + R]`` of one model's captions.
Score = Callable[[pd.DataFrame], np.ndarray]


def _bleu(captions: pd.DataFrame) -> np.ndarray:
    return bleu(captions[COUNTS].to_numpy())


def _mean(column: str, captions: pd.DataFrame) -> np.ndarray:
    return means(captions[column].to_numpy(), np.ones(len(captions)))


def _gained(name: str, score: Score, folder: Path) -> Finding:
    """That each top-k model gains over softmax, seed by seed."""
    captions = read_captioning(folder, "captions.parquet")
    scores = {run: score(table) for run, table in captions.groupby(["model", "seed"])}
    of_softmax = {seed: found for (model, seed), found in scores.items() if model == "softmax"}
    effects = []
    for model in sorted({model for model, _ in scores} - {"softmax"}):
        gained = [
            found - of_softmax[seed] for (own, seed), found in scores.items() if own == model and seed in of_softmax
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
