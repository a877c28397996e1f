"""Training a captioner, so that an interrupted run goes on as if nothing had happened."""

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_model
from torch import Tensor
from transformers import Trainer, TrainingArguments

from replication.captioning.batches import Captions, Regions, labels_batch, regions_batch
from replication.captioning.model import Captioner
from replication.files.seals import seal
from replication.files.storage import replacing
from replication.training import check_loss, keep_whole_checkpoints, train_to_the_end


class CaptionTrainer(Trainer):
    """A Trainer of captioners: cross-entropy of every next word."""

    def training_step(self, *args, **kwargs) -> Tensor:
        loss = super().training_step(*args, **kwargs)
        check_loss(loss.item(), self.state.global_step + 1, self.args.learning_rate)
        return loss

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        loss = model.describe(**inputs).loss
        return (loss, {}) if return_outputs else loss


def train(
    model: Captioner, captions: Captions, regions: Regions, folder: Path, *, seed: int, **arguments: object
) -> list[dict[str, float]]:
    """Train on captions of images and leave the model in ``folder``.

    A run that was interrupted goes on from its last whole checkpoint if it was started with the same settings.

    Parameters
    ----------
    regions : what reads the features of an image, ``[R, F]``, by its number
    arguments : to ``TrainingArguments``: steps, batch, learning rate and schedule, precision

    Returns the training log: one entry per logging step.
    """
    checkpoints = folder / "checkpoints"
    args = TrainingArguments(
        output_dir=str(checkpoints),
        seed=seed,
        report_to="none",
        use_cpu=not torch.accelerator.is_available(),
        save_total_limit=1,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        **arguments,
    )
    text = hashlib.sha256(json.dumps(captions.items).encode()).hexdigest()
    keep_whole_checkpoints(checkpoints, {"seed": seed, **arguments, "model": model.config.to_dict(), "text": text})
    trainer = CaptionTrainer(
        model=model,
        args=args,
        train_dataset=captions,
        data_collator=partial(_batch, regions, model.config.region_width, model.config.region_count),
    )
    trainer.model_accepts_loss_kwargs = False
    log = train_to_the_end(trainer)
    with replacing(folder / "model.safetensors") as temporary:
        save_model(model, str(temporary))
    model.config.save_pretrained(folder)
    seal(folder / "config.json")
    return log


def _batch(regions: Regions, width: int, most: int, items: Sequence[tuple[int, list[int]]]) -> dict[str, Tensor]:
    images, captions = zip(*items, strict=True)
    return regions_batch(regions, images, width, most) | {"labels": labels_batch(captions)}
