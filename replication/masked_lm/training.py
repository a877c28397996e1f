"""Training an entmax masked language model, so that an interrupted run goes on as if nothing had happened."""

import hashlib
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_model
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import (
    DataCollatorForLanguageModeling,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    default_data_collator,
)
from transformers.trainer_utils import get_last_checkpoint

from replication.divergence import check_loss
from replication.masked_lm.model import IGNORED, check_length, masked_loss
from replication.seals import seal
from replication.storage import replacing
from sparselib.dense_attention import Normalizer
from sparselib.integrations.huggingface import AttentionControl, use_attention
from sparselib.normalizers import entmax15


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
                loss = masked_loss(model, input_ids, following)
        else:
            loss = masked_loss(model, *self._mask(input_ids))
        return (loss, {}) if return_outputs else loss

    def _mask(self, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        if self.drawn_for != self.state.global_step:
            self.drawn_for = self.state.global_step
            seed = self.args.seed * 1_000_003 + self.drawn_for * self.args.world_size + self.args.process_index
            self.collator.generator = torch.Generator().manual_seed(seed)
        places = input_ids.cpu()
        masked, labels = self.collator.torch_mask_tokens(places, special_tokens_mask=torch.isin(places, self.special))
        return masked.to(input_ids.device), labels.to(input_ids.device)


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    input_ids: Tensor,
    folder: str | Path,
    *,
    seed: int,
    mask_probability: float,
    causal_steps: int = 0,
    normalizer: Normalizer = entmax15,
    **arguments: object,
) -> list[dict[str, float]]:
    """Train on blocks ``[N, n]`` and leave the model in ``folder``.

    A run that was interrupted goes on from its last whole checkpoint if it was started with the same settings.

    Parameters
    ----------
    mask_probability : float
        Share of tokens to predict (80 % masked, 10 % random, 10 % kept, as BERT).
    causal_steps : int
        First steps that predict the next token under a causal mask instead.
    arguments
        To ``TrainingArguments``: steps, batch, learning rate and schedule, precision.

    Returns
    -------
    The training log: one entry per logging step.
    """
    folder = Path(folder)
    check_length(model, input_ids.shape[1])
    control = use_attention(model, normalizer)
    checkpoints = folder / "checkpoints"
    text = hashlib.sha256(input_ids.contiguous().numpy().tobytes()).hexdigest()
    _discard_foreign_checkpoints(
        checkpoints,
        {"seed": seed, "mask_probability": mask_probability, "causal_steps": causal_steps, **arguments}
        | {"model": model.config.to_dict(), "text": text},
    )
    trainer = MaskedLMTrainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(checkpoints),
            seed=seed,
            report_to="none",
            use_cpu=not torch.accelerator.is_available(),
            save_total_limit=1,
            dataloader_pin_memory=torch.cuda.is_available(),
            **arguments,
        ),
        train_dataset=Blocks(input_ids),
        collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=mask_probability),
        control=control,
        causal_steps=causal_steps,
    )
    trainer.train(resume_from_checkpoint=_last_whole_checkpoint(checkpoints))
    if trainer.is_world_process_zero():
        with replacing(folder / "model.safetensors") as temporary:
            save_model(model, str(temporary))
        model.config.save_pretrained(folder)
        seal(folder / "config.json")
        shutil.rmtree(checkpoints)
    return trainer.state.log_history


def _discard_foreign_checkpoints(folder: Path, settings: dict[str, object]) -> None:
    """Keep the checkpoints in ``folder`` only if they were made with these settings."""
    record = folder / "settings.json"
    as_text = json.dumps(settings, sort_keys=True, default=str)
    if folder.exists() and not (record.exists() and record.read_text() == as_text):
        shutil.rmtree(folder)
    with replacing(record) as temporary:
        temporary.write_text(as_text)


def _last_whole_checkpoint(folder: Path) -> str | None:
    """The newest checkpoint that was written to its end; what a kill left half-written is removed."""
    for checkpoint in folder.glob("checkpoint-*"):
        if not _is_whole(checkpoint):
            shutil.rmtree(checkpoint)
    return get_last_checkpoint(str(folder))


def _is_whole(checkpoint: Path) -> bool:
    """The Trainer writes ``trainer_state.json`` last, so it tells: it is missing or cut off if anything is."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return True
