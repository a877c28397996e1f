"""How long a training step takes, model beside model."""

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
    """Time steps on the first segment of a text, the models in turn, so that a disturbance of the machine hits all alike.

    The models are trained on by it. Memory of a recurrent model is that of one segment.

    Returns
    -------
    A row per model: ``model``, ``step_seconds`` (median), ``step_repeats`` (what it is the median of).

    Raises ``ValueError`` if ``repeats`` is below 1.
    """
    at_least("repeats", repeats, 1)
    inputs, targets = text.segment(0, recipe.length)
    runs = {}
    for name, model in models.items():
        progress = Progress(model, torch.optim.Adam(model.parameters()))
        runs[name] = partial(step, progress, inputs, targets, recipe)
    seconds = repeated_seconds(runs, repeats, accelerator().type)
    rows = [
        {"model": name, "step_seconds": median(found), "step_repeats": " ".join(f"{one:.6g}" for one in found)}
        for name, found in seconds.items()
    ]
    return pd.DataFrame(rows)
