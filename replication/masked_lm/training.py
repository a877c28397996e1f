"""Training an entmax masked language model, so that an interrupted run goes on as if nothing had happened."""

import hashlib
from dataclasses import replace
from pathlib import Path
from types import MethodType

import torch
import torch.distributed
from safetensors.torch import save_model
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import (
    DataCollatorForLanguageModeling,
    EarlyStoppingCallback,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    default_data_collator,
)

from replication.files.seals import seal
from replication.files.storage import replacing
from replication.masked_lm.model import IGNORED, check_length, masked_loss
from replication.training import COUNT, INDEX, check_loss, is_first, keep_whole_checkpoints, share, train_to_the_end
from sparselib.control import AttentionControl
from sparselib.dense_attention import Normalizer
from sparselib.huggingface import use_attention
from sparselib.normalizers import entmax15

#: Measure the held-out loss at each checkpoint, and end with the model that had the lowest.
HELD_OUT = {
    "eval_strategy": "steps",
    "per_device_eval_batch_size": 8,
    "load_best_model_at_end": True,
    "metric_for_best_model": "loss",
    "greater_is_better": False,
    "restore_callback_states_from_checkpoint": True,
}


class Blocks(Dataset):
    """Blocks of token ids ``[N, n]`` as the Trainer wants them."""

    def __init__(self, input_ids: Tensor):
        self.input_ids = input_ids

    def __len__(self) -> int:
        return len(self.input_ids)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"input_ids": self.input_ids[index].long()}


class MaskedLMTrainer(Trainer):
    """A Trainer that projects to the vocabulary only where there is something to predict.

    For its first ``causal_steps`` steps it predicts every next token under a causal mask instead: at each place rather than at
    a sixth of them. It masks here, from a generator of its own for every step, since a collator is called ahead of the step and
    would choose other places after an interruption.
    """

    def __init__(
        self, *args, control: AttentionControl, collator: DataCollatorForLanguageModeling, causal_steps: int, **kwargs
    ):
        super().__init__(*args, data_collator=default_data_collator, **kwargs)
        # The loss is a mean, so the Trainer has to divide it by the number of accumulated batches.
        self.model_accepts_loss_kwargs = False
        self.control, self.collator, self.causal_steps = control, collator, causal_steps
        self.special = torch.tensor(collator.tokenizer.all_special_ids)
        self.drawn_for = -1

    def training_step(self, *args, **kwargs) -> Tensor:
        loss = super().training_step(*args, **kwargs)
        check_loss(loss.item(), self.state.global_step + 1, self.args.learning_rate)
        return loss

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        input_ids = inputs["input_ids"]
        if self.state.global_step < self.causal_steps:
            following = nn.functional.pad(input_ids[:, 1:], (0, 1), value=IGNORED)
            with self.control.restricted_to(lambda call: call.visible.tril()):
                loss = model(input_ids, following)
        else:
            loss = model(*self._mask(input_ids))
        return (loss, {}) if return_outputs else loss

    def prediction_step(self, model, inputs, *_, **__) -> tuple[Tensor, None, None]:
        """Return the loss of held-out blocks that were masked once, so that checkpoints compare."""
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            return model(inputs["input_ids"], inputs["labels"]).detach(), None, None

    def _mask(self, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        if self.drawn_for != self.state.global_step:
            self.drawn_for = self.state.global_step
            seed = self.args.seed * 1_000_003 + self.drawn_for
            self.collator.generator = torch.Generator().manual_seed(seed)
        # Each process draws for the rows of all, which go by its own, and so masks the places that one alone would.
        places = input_ids.cpu().repeat(COUNT, 1)
        drawn = self.collator.torch_mask_tokens(places, special_tokens_mask=torch.isin(places, self.special))
        masked, labels = (rows.chunk(COUNT)[INDEX].to(input_ids.device) for rows in drawn)
        return masked, labels


def _masked_once(collator: DataCollatorForLanguageModeling, input_ids: Tensor, seed: int) -> list[dict[str, Tensor]]:
    """Mask each block ``[n]`` with the same generator on every call."""
    collator = replace(collator, seed=seed)
    masked = collator([{"input_ids": block.long()} for block in input_ids])
    return [
        {"input_ids": inputs, "labels": labels}
        for inputs, labels in zip(masked["input_ids"], masked["labels"], strict=True)
    ]


def share_of_loss(model: PreTrainedModel, input_ids: Tensor, labels: Tensor) -> Tensor:
    """The loss of one process, so that the mean over the processes is that of all their places.

    Training calls the model itself for it: what wraps a model, for other processes or lower precision, wraps its call.
    """
    if COUNT == 1:
        return masked_loss(model, input_ids, labels)
    places = (labels != IGNORED).sum()
    torch.distributed.all_reduce(places)
    return masked_loss(model, input_ids, labels, reduction="none").sum() * COUNT / places


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    input_ids: Tensor,
    folder: str | Path,
    *,
    seed: int,
    mask_probability: float,
    causal_steps: int = 0,
    held_out: int = 0,
    patience: int = 0,
    normalizer: Normalizer = entmax15,
    **arguments: object,
) -> list[dict[str, float]]:
    """Train on blocks ``[N, n]`` and leave the model in ``folder``.

    An interrupted run resumes from its last whole checkpoint if it was started with the same settings. Checkpoints stay until
    :func:`replication.training.remove_checkpoints`. Processes that torchrun has started share each batch, and the first of them
    writes.

    Parameters
    ----------
    mask_probability : float
        Share of tokens to predict (80 % masked, 10 % random, 10 % kept, as BERT).
    causal_steps : int
        First steps that predict the next token under a causal mask instead.
    held_out : int
        Blocks, evenly spaced over the text, that are not trained on. Their loss is measured at each checkpoint, and the model
        with the lowest loss is kept.
    patience : int
        Stop after so many checkpoints in a row without a lower held-out loss; 0 does not stop early.
    arguments
        To ``TrainingArguments``: steps, batch, learning rate and schedule, precision.

    Returns
    -------
    The training log: one entry per logging step, and one per held-out loss.

    Raises
    ------
    ValueError
        If the blocks are longer than the model's positions, if ``patience`` is given without ``held_out``, if fewer than two
        blocks would be trained on, or if the loss diverges.
    """
    folder = Path(folder)
    check_length(model, input_ids.shape[1])
    if patience and not held_out:
        raise ValueError(f"`held_out` must be at least 1 with `patience` {patience}: its loss decides when to stop")
    if held_out and held_out > len(input_ids) - 2:
        raise ValueError(f"`held_out` must leave two of {len(input_ids)} training sequences, got {held_out}")
    batch = "per_device_train_batch_size"
    own = arguments | {batch: share(batch, arguments.get(batch, TrainingArguments.per_device_train_batch_size))}
    control = use_attention(model, normalizer)
    checkpoints = folder / "checkpoints"
    on_cpu = not torch.accelerator.is_available()
    args = TrainingArguments(
        output_dir=str(checkpoints),
        seed=seed,
        report_to="none",
        use_cpu=on_cpu,
        ddp_backend="gloo" if on_cpu and COUNT > 1 else None,
        save_total_limit=1,
        dataloader_pin_memory=torch.cuda.is_available(),
        **(HELD_OUT if held_out else {}),
        **own,
    )
    if held_out:
        args.eval_steps = args.save_steps
    text = hashlib.sha256(input_ids.contiguous().numpy().tobytes()).hexdigest()
    with args.main_process_first():
        if is_first():
            keep_whole_checkpoints(
                checkpoints,
                {"seed": seed, "mask_probability": mask_probability, "causal_steps": causal_steps, **arguments}
                | {"held_out": held_out, "patience": patience}
                | {"model": model.config.to_dict(), "text": text},
            )
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=mask_probability)
    kept = torch.zeros(len(input_ids), dtype=torch.bool)
    kept[torch.linspace(0, len(input_ids) - 1, held_out).long()] = True
    trainer = MaskedLMTrainer(
        model=model,
        args=args,
        train_dataset=Blocks(input_ids[~kept]),
        eval_dataset=_masked_once(collator, input_ids[kept], seed) if held_out else None,
        callbacks=[EarlyStoppingCallback(patience)] if patience else None,
        collator=collator,
        control=control,
        causal_steps=causal_steps,
    )
    model.forward = MethodType(share_of_loss, model)
    try:
        log = train_to_the_end(trainer)
    finally:
        for name in ("forward", "_original_forward"):
            vars(model).pop(name, None)
    if is_first():
        with replacing(folder / "model.safetensors") as temporary:
            save_model(model, str(temporary))
        model.config.save_pretrained(folder)
        seal(folder / "config.json")
    return log
