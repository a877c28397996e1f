"""The masked language model: building, loading and its loss; training needs much more of transformers."""

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

from replication.files.paths import located
from replication.files.seals import verified
from sparselib.control import AttentionControl
from sparselib.huggingface import use_attention

IGNORED = -100
#: What the model is read from.
FILES = ("config.json", "model.safetensors")
#: Names of the vocabulary head: RoBERTa's and BERT's.
HEADS = ("lm_head", "cls")


def build_model(
    tokenizer: PreTrainedTokenizerFast,
    length: int,
    seed: int,
    *,
    tied_query_key: bool = False,
    sinusoidal_positions: bool = False,
    **architecture: int,
) -> RobertaForMaskedLM:
    """Build a RoBERTa with random weights for sequences of ``length`` tokens.

    Both options make each head attend to near positions from the first step on, so that it learns from little text. The papers
    have no such initialisation, and it shapes the result: queries and keys stay similar, which favours a projection that both
    share, Reformer's buckets and quantization.

    Parameters
    ----------
    tied_query_key : bool
        Start each layer's key weights as a copy of its query weights.
    sinusoidal_positions : bool
        Start position embeddings as sinusoids (Vaswani et al. 2017, section 3.5) with twice the token embeddings' deviation.
    architecture
        Sizes, as arguments of ``RobertaConfig``.
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
    with torch.no_grad():
        if sinusoidal_positions:
            positions = model.roberta.embeddings.position_embeddings.weight
            # A sinusoid of amplitude 1 has a standard deviation of 1 / sqrt(2).
            positions.copy_(_sinusoids(*positions.shape) * (2 * 2**0.5 * model.config.initializer_range))
        if tied_query_key:
            for layer in model.roberta.encoder.layer:
                layer.attention.self.key.weight.copy_(layer.attention.self.query.weight)
    return model


def _sinusoids(count: int, size: int) -> Tensor:
    """Vaswani et al. (2017), section 3.5: ``[count, size]``, sines and cosines in turn."""
    frequency = 10_000 ** (-torch.arange(0, size, 2) / size)
    angle = torch.arange(count)[:, None] * frequency
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :size]


def load_model(name: str | Path) -> PreTrainedModel:
    """Load a masked language model from a folder of ``save_pretrained``, a package or the hub.

    Raises
    ------
    FileNotFoundError
        If there is no model of that name.
    ValueError
        If it is of a kind that :func:`vocabulary_head` does not know, if weights are missing or of other shapes than its
        configuration says, or if a file has changed since it was sealed.
    """
    for file in FILES:
        verified(Path(name) / file)
    model, unfit = _load(name)
    if unfit:
        raise ValueError(f"{name}: its weights are not those of its configuration: {', '.join(unfit[:3])}")
    return model


def load_pretrained(name: str | Path, seed: int, **changes: float) -> PreTrainedModel:
    """Load a pretrained encoder to fine-tune; a vocabulary head that it lacks starts from random weights.

    Parameters
    ----------
    name : str or Path
        A folder, ``package:NAME/FOLDER``, or a model of the hub.
    seed : int
        Seed of a new head's weights.
    changes
        Values that replace those of the model's configuration, such as ``attention_probs_dropout_prob``.

    Raises
    ------
    FileNotFoundError
        If there is no model of that name.
    ValueError
        If weights of the encoder are missing or of other shapes than its configuration says, or as :func:`load_model`.
    """
    set_seed(seed)
    model, unfit = _load(name, **changes)
    if unfit := [key for key in unfit if not key.startswith(HEADS)]:
        raise ValueError(f"{name}: its weights are not those of its configuration: {', '.join(unfit[:3])}")
    return model


def _load(name: str | Path, **changes: float) -> tuple[PreTrainedModel, list[str]]:
    """Return the model and the names of weights that are missing or have another shape."""
    try:
        # Weights of other shapes are returned by name, with the missing ones.
        model, loading = AutoModelForMaskedLM.from_pretrained(
            located(str(name)), output_loading_info=True, ignore_mismatched_sizes=True, **changes
        )
    except OSError as error:
        raise FileNotFoundError(f"{name}: no model there, nor on the hub ({error})") from error
    except SafetensorError as error:
        raise ValueError(f"{name}: its weights are truncated or damaged ({error})") from error
    vocabulary_head(model)
    return model, sorted(loading["missing_keys"]) + sorted(str(key[0]) for key in loading["mismatched_keys"])


def vocabulary_head(model: PreTrainedModel) -> nn.Module:
    """Return the module that maps hidden states to vocabulary scores: RoBERTa's ``lm_head`` or BERT's ``cls``.

    Raises ``ValueError`` if the model has neither.
    """
    for name in HEADS:
        if hasattr(model, name):
            return getattr(model, name)
    raise ValueError(f"{type(model).__name__} has no {' or '.join(HEADS)}: a model like RoBERTa or BERT is needed")


def load_entmax_model(folder: str | Path) -> tuple[PreTrainedModel, AttentionControl]:
    """A trained model with 1.5-entmax in every head, on the accelerator if there is one."""
    model = load_model(folder)
    if torch.accelerator.is_available():
        model.to(torch.accelerator.current_accelerator())
    return model.eval(), use_attention(model)


def check_length(model: PreTrainedModel, length: int) -> None:
    """Raise ``ValueError`` if sequences of ``length`` have more tokens than the model has positions."""
    # RoBERTa numbers its positions from pad_token_id + 1 on, BERT from 0.
    offset = model.config.pad_token_id + 1 if model.config.model_type == "roberta" else 0
    positions = model.config.max_position_embeddings - offset
    if length > positions:
        raise ValueError(f"sequences of {length} tokens are longer than the model's {positions} positions")


def masked_loss(
    model: PreTrainedModel, input_ids: Tensor, labels: Tensor, reduction: str = "mean", **inputs: Tensor
) -> Tensor:
    """Mean cross-entropy (nats) over the places where ``labels [B, n]`` is not -100; with ``"none"`` that of each place."""
    chosen = labels != IGNORED
    hidden = model.base_model(input_ids=input_ids, **inputs).last_hidden_state[chosen]
    scores = vocabulary_head(model)(hidden).float()
    return nn.functional.cross_entropy(scores, labels[chosen], reduction=reduction)
