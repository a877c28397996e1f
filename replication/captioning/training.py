"""Training of a captioner; an interrupted run resumes with the same result."""

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from torch import Tensor
from transformers import Trainer

from replication.captioning.batches import Captions, Regions, labels_batch, regions_batch
from replication.captioning.model import Captioner
from replication.files.unfinished import keep_whole_checkpoints
from replication.training import (
    MeanLossMixin,
    save_trained,
    train_to_the_end,
    training_arguments,
)


class CaptionTrainer(MeanLossMixin, Trainer):
    """A Trainer of captioners, with the cross-entropy of every next word."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        loss = model.describe(**inputs).loss
        return (loss, {}) if return_outputs else loss


def train(
    model: Captioner, captions: Captions, regions: Regions, folder: Path, *, seed: int, **arguments: object
) -> list[dict[str, float]]:
    """Train on captions of images and write the model to ``folder``.

    An interrupted run resumes from its last whole checkpoint if it was started with the same settings. Checkpoints stay until
    :func:`replication.training.remove_checkpoints`.

    Parameters
    ----------
    model : Captioner
        The model, which is changed.
    captions : Captions
        Training captions.
    regions : callable
        From an image's number to the features of its regions, ``[R, F]``.
    folder : Path
        Folder of the model.
    seed : int
        Seed of the order of captions and of dropout.
    arguments
        To ``TrainingArguments``: steps, batch, learning rate and schedule, precision.

    Returns
    -------
    list of dict
        The training log: one entry per logging step.

    Raises
    ------
    ValueError
        If the loss diverges, or an image's regions do not fit the model.
    """
    args = training_arguments(folder, seed, remove_unused_columns=False, **arguments)
    text = hashlib.sha256(json.dumps(captions.items).encode()).hexdigest()
    settings = {"seed": seed, **arguments, "model": model.config.to_dict(), "text": text}
    keep_whole_checkpoints(Path(args.output_dir), settings)
    trainer = CaptionTrainer(
        model=model,
        args=args,
        train_dataset=captions,
        data_collator=partial(_batch, regions, model.config.region_width, model.config.region_count),
    )
    log = train_to_the_end(trainer)
    save_trained(model, folder)
    return log


def _batch(regions: Regions, width: int, most: int, items: Sequence[tuple[int, list[int]]]) -> dict[str, Tensor]:
    images, captions = zip(*items, strict=True)
    return regions_batch(regions, images, width, most) | {"labels": labels_batch(captions)}
