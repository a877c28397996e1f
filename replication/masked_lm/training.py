"""Training of a masked language model with entmax; an interrupted run resumes with the same result."""

import hashlib
from dataclasses import replace
from pathlib import Path
from types import MethodType

import torch
import torch.distributed
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

from replication.files.unfinished import keep_whole_checkpoints
from replication.masked_lm.adapters import add_adapters, write_adapters
from replication.masked_lm.model import ALPHA, IGNORED, check_length, masked_loss
from replication.run.layout import ADAPTERS
from replication.training import (
    COUNT,
    INDEX,
    MeanLossMixin,
    is_first,
    save_trained,
    share,
    train_to_the_end,
    training_arguments,
)
from sparselib.control import AttentionControl
from sparselib.dense_attention import Normalizer
from sparselib.huggingface import use_attention
from sparselib.normalizers import alpha_of, entmax15

#: Arguments with which the held-out loss is measured at each checkpoint, and the model with the lowest one is kept.
HELD_OUT = {
    "eval_strategy": "steps",
    "per_device_eval_batch_size": 8,
    "load_best_model_at_end": True,
    "metric_for_best_model": "loss",
    "greater_is_better": False,
    "restore_callback_states_from_checkpoint": True,
}


class Blocks(Dataset):
    """Blocks of token ids ``[N, n]`` as a dataset for the Trainer."""

    def __init__(self, input_ids: Tensor):
        self.input_ids = input_ids

    def __len__(self) -> int:
        return len(self.input_ids)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"input_ids": self.input_ids[index].long()}


class MaskedLMTrainer(MeanLossMixin, Trainer):
    """A Trainer that projects to the vocabulary only at masked places.

    In its first ``causal_steps`` steps it predicts every next token under a causal mask instead, which gives a loss at every
    place rather than at a sixth of them.
    """

    def __init__(
        self, *args, control: AttentionControl, collator: DataCollatorForLanguageModeling, causal_steps: int, **kwargs
    ):
        super().__init__(*args, data_collator=default_data_collator, **kwargs)
        self.control, self.collator, self.causal_steps = control, collator, causal_steps
        self.special = torch.tensor(collator.tokenizer.all_special_ids)
        self.drawn_for = -1

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
        """Return the loss of held-out blocks, which are masked once for all checkpoints."""
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            return model(inputs["input_ids"], inputs["labels"]).detach(), None, None

    def _mask(self, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Mask token ids from a generator per step.

        The Trainer calls a data collator ahead of the step, so a collator would choose other places after an interruption.
        """
        if self.drawn_for != self.state.global_step:
            self.drawn_for = self.state.global_step
            seed = self.args.seed * 1_000_003 + self.drawn_for
            self.collator.generator = torch.Generator().manual_seed(seed)
        # Each process draws for the rows of all, so that several processes mask the same places as one.
        places = input_ids.cpu().repeat(COUNT, 1)
        drawn = self.collator.torch_mask_tokens(places, special_tokens_mask=torch.isin(places, self.special))
        masked, labels = (rows.chunk(COUNT)[INDEX].to(input_ids.device) for rows in drawn)
        return masked, labels


def _masked_once(collator: DataCollatorForLanguageModeling, input_ids: Tensor, seed: int) -> list[dict[str, Tensor]]:
    """Mask each block ``[n]``, the same on every call."""
    collator = replace(collator, seed=seed)
    masked = collator([{"input_ids": block.long()} for block in input_ids])
    return [
        {"input_ids": inputs, "labels": labels}
        for inputs, labels in zip(masked["input_ids"], masked["labels"], strict=True)
    ]


def share_of_loss(model: PreTrainedModel, input_ids: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of this process, scaled so that its mean over the processes is the mean over all their places.

    Training sets this as the model's ``forward``, because wrappers for several processes or lower precision wrap that call.
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
    adapter_rank: int = 0,
    base: str = "",
    normalizer: Normalizer = entmax15,
    **arguments: object,
) -> list[dict[str, float]]:
    """Train on blocks of token ids and write the model to ``folder``.

    An interrupted run resumes from its last whole checkpoint if it was started with the same settings. Checkpoints stay until
    :func:`replication.training.remove_checkpoints`. Processes of torchrun share each batch, and the first of them writes.

    Parameters
    ----------
    model : PreTrainedModel
        The model, which is changed.
    tokenizer : PreTrainedTokenizerFast
        Tokenizer with the mask token.
    input_ids : integer Tensor ``[N, n]``
        Blocks of the training text.
    folder : str or Path
        Folder of the model.
    seed : int
        Seed of the order of blocks, masks and dropout.
    mask_probability : float
        Share of tokens to predict (80 % masked, 10 % random, 10 % kept, as BERT).
    causal_steps : int
        Number of first steps that predict the next token under a causal mask instead.
    held_out : int
        Number of blocks, evenly spaced over the text, that are not trained on. Their loss is measured at each checkpoint, and
        the model with the lowest loss is kept.
    patience : int
        Number of checkpoints in a row without a lower held-out loss after which training stops; 0 for no early stopping.
    adapter_rank : int
        Rank of the adapters that are trained in place of the layers' weights; 0 to train all weights.
    base : str
        Name of the pretrained model, for its adapters.
    normalizer : callable
        Normalizer of all heads.
    arguments
        To ``TrainingArguments``: steps, batch, learning rate and schedule, precision.

    Returns
    -------
    list of dict
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
    process_arguments = arguments | {
        batch: share(batch, arguments.get(batch, TrainingArguments.per_device_train_batch_size))
    }
    control = use_attention(model, normalizer)
    setattr(model.config, ALPHA, alpha_of(normalizer))
    adapters = add_adapters(model, adapter_rank) if adapter_rank else None
    args = training_arguments(
        folder,
        seed,
        ddp_backend="gloo" if COUNT > 1 and not torch.accelerator.is_available() else None,
        **(HELD_OUT if held_out else {}),
        **process_arguments,
    )
    if held_out:
        args.eval_steps = args.save_steps
    text = hashlib.sha256(input_ids.contiguous().numpy().tobytes()).hexdigest()
    with args.main_process_first():
        if is_first():
            keep_whole_checkpoints(
                Path(args.output_dir),
                {"seed": seed, "mask_probability": mask_probability, "causal_steps": causal_steps, **arguments}
                | {"held_out": held_out, "patience": patience, "adapter_rank": adapter_rank}
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
        if adapters:
            write_adapters(folder / ADAPTERS, model, adapter_rank, base)
            adapters.merge_and_unload()
        save_trained(model, folder)
    return log
