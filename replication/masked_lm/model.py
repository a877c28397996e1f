"""The masked language model itself: made or loaded, and its loss. Training it needs much more of transformers."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import (
    AutoModelForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    set_seed,
)

from replication.seals import verified
from sparselib.integrations.huggingface import AttentionControl, use_attention

IGNORED = -100
#: What the model is read from.
FILES = ("config.json", "model.safetensors")


def build_model(tokenizer: PreTrainedTokenizerFast, length: int, seed: int, **architecture: int) -> RobertaForMaskedLM:
    """A RoBERTa with random weights for sequences of ``length``; ``architecture`` goes to ``RobertaConfig``.

    So that it finds its neighbours with little text, attention starts local and is learned from there: position embeddings
    start as sinusoids, twice as large as token embeddings, and each head's key weights as its query weights, which together
    make near positions score higher. With random ones each of n keys starts with a weight of 1 / n and little gradient.
    """
    set_seed(seed)
    model = RobertaForMaskedLM(
        RobertaConfig(
            vocab_size=len(tokenizer),
            max_position_embeddings=length + tokenizer.pad_token_id + 1,
            bos_token_id=tokenizer.bos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            **architecture,
        )
    )
    positions = model.roberta.embeddings.position_embeddings.weight
    with torch.no_grad():
        # A sinusoid of amplitude 1 has a standard deviation of 1 / sqrt(2).
        positions.copy_(_sinusoids(*positions.shape) * (2 * 2**0.5 * model.config.initializer_range))
        for layer in model.roberta.encoder.layer:
            layer.attention.self.key.weight.copy_(layer.attention.self.query.weight)
    return model


def _sinusoids(count: int, size: int) -> Tensor:
    """Vaswani et al. (2017), section 3.5: ``[count, size]``, sines and cosines in turn."""
    frequency = 10_000 ** (-torch.arange(0, size, 2) / size)
    angle = torch.arange(count)[:, None] * frequency
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :size]


def load_model(name: str | Path) -> PreTrainedModel:
    """A masked language model from the hub, or from a folder that ``save_pretrained`` made.

    Raises
    ------
    ValueError
        If its vocabulary projection is not ``lm_head``, as RoBERTa's is: only such models are trained and evaluated here. If
        weights are missing or of other shapes than its configuration says, or have changed since they were sealed.
    """
    for file in FILES:
        verified(Path(name) / file)
    try:
        # Weights of other shapes are told below, with the rest of what does not fit.
        model, told = AutoModelForMaskedLM.from_pretrained(name, output_loading_info=True, ignore_mismatched_sizes=True)
    except OSError as error:
        raise FileNotFoundError(f"{name}: no model there, nor on the hub ({error})") from error
    except SafetensorError as error:
        raise ValueError(f"{name}: its weights are truncated or damaged ({error})") from error
    if not hasattr(model, "lm_head"):
        raise ValueError(f"{name}: {type(model).__name__} has no lm_head; a model of RoBERTa's kind is needed")
    if unfit := sorted(told["missing_keys"]) + sorted(str(one[0]) for one in told["mismatched_keys"]):
        raise ValueError(f"{name}: its weights are not those of its configuration: {', '.join(unfit[:3])}")
    return model


def load_entmax_model(folder: str | Path) -> tuple[PreTrainedModel, AttentionControl]:
    """A trained model with 1.5-entmax in every head, on the accelerator if there is one."""
    model = load_model(folder)
    if torch.accelerator.is_available():
        model.to(torch.accelerator.current_accelerator())
    return model.eval(), use_attention(model)


def check_length(model: PreTrainedModel, length: int) -> None:
    """Raise ``ValueError`` if sequences of ``length`` have more tokens than the model has positions."""
    # RoBERTa numbers its positions from pad_token_id + 1 on.
    positions = model.config.max_position_embeddings - (model.config.pad_token_id or 0) - 1
    if length > positions:
        raise ValueError(f"sequences of {length} tokens are longer than the model's {positions} positions")


def masked_loss(
    model: PreTrainedModel, input_ids: Tensor, labels: Tensor, reduction: str = "mean", **inputs: Tensor
) -> Tensor:
    """Mean cross-entropy (nats) over the places where ``labels [B, n]`` is not -100; with ``"none"`` that of each place."""
    chosen = labels != IGNORED
    hidden = model.base_model(input_ids=input_ids, **inputs).last_hidden_state[chosen]
    return nn.functional.cross_entropy(model.lm_head(hidden).float(), labels[chosen], reduction=reduction)
