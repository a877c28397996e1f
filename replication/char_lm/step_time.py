"""Seconds of a training step, for several models under the same conditions."""

from collections.abc import Mapping
from functools import partial
from statistics import median

import pandas as pd
import torch

from replication.char_lm.data import Stream
from replication.char_lm.models import accelerator
from replication.char_lm.recurrent import RecurrentModel
from replication.char_lm.training import Progress, Recipe, step
from replication.timing.clock import repeated_seconds
from sparselib.checks import at_least


def step_seconds(models: Mapping[str, RecurrentModel], text: Stream, recipe: Recipe, repeats: int) -> pd.DataFrame:
    """Time training steps on the first segment of a text, model by model in turn, so that disturbances affect all alike.

    The steps change the models. The memory of a recurrent model has the length of one segment.

    Returns
    -------
    DataFrame
        A row per model: ``model``, ``step_seconds`` (median) and ``step_repeats`` (all times, separated by spaces).

    Raises
    ------
    ValueError
        If ``repeats`` is below 1.
    """
    at_least("repeats", repeats, 1)
    inputs, targets = text.segment(0, recipe.length)
    runs = {}
    for name, model in models.items():
        progress = Progress(model, torch.optim.Adam(model.parameters()))
        runs[name] = partial(step, progress, inputs, targets, recipe)
    seconds = repeated_seconds(runs, repeats, accelerator().type)
    rows = [
        {"model": name, "step_seconds": median(times), "step_repeats": " ".join(f"{time:.6g}" for time in times)}
        for name, times in seconds.items()
    ]
    return pd.DataFrame(rows)
