"""Masked language models: building, loading and the loss, without transformers' training code, which is slow to import."""

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
from transformers.utils import ModelOutput

from replication.files.encoders import ENCODERS
from replication.files.paths import located
from sparselib.control import AttentionControl
from sparselib.huggingface import use_attention
from sparselib.normalizers import Entmax

IGNORED = -100
#: Files of a model.
FILES = ("config.json", "model.safetensors")
#: Name of the normaliser's alpha in the model's configuration.
ALPHA = "attention_alpha"


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

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
        Tokenizer that gives the vocabulary size and special tokens.
    length : int
        Tokens of the longest sequence.
    seed : int
        Seed of the weights.
    tied_query_key : bool
        Start each layer's key weights as a copy of its query weights.
    sinusoidal_positions : bool
        Start position embeddings as sinusoids (Vaswani et al. 2017, section 3.5) with twice the token embeddings' deviation.
    architecture
        Sizes, as arguments of ``RobertaConfig``.

    Notes
    -----
    Both options make each head attend to near positions from the first step on, so that it learns from little text. The papers
    have no such initialisation, and it shapes the result: queries and keys stay similar, which favours a projection that both
    share, Reformer's buckets and quantization.
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
    """Return sinusoidal encodings ``[count, size]`` with alternating sines and cosines (Vaswani et al. 2017, section 3.5)."""
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
        If the model's type is none of :data:`replication.files.encoders.ENCODERS`, or if weights are missing or have
        other shapes than in its configuration.
    """
    model, unfit = _load(name)
    if unfit:
        raise ValueError(f"{name}: weights do not match the configuration: {', '.join(unfit[:3])}")
    return model


def load_pretrained(name: str | Path, seed: int, **changes: float) -> PreTrainedModel:
    """Load a pretrained encoder to fine-tune; a vocabulary head that it lacks starts from random weights.

    ``config.random_head`` of the model says whether it does.

    Parameters
    ----------
    name : str or Path
        A folder, ``package:NAME/FOLDER``, or a model on the hub.
    seed : int
        Seed of a new head's weights.
    changes
        Values that replace values of the model's configuration, such as ``attention_probs_dropout_prob``.

    Raises
    ------
    FileNotFoundError
        If there is no model of that name.
    ValueError
        If weights of the encoder or a part of the head are missing or have other shapes than in the model's configuration, and
        as in :func:`load_model`.
    """
    set_seed(seed)
    model, unfit = _load(name, **changes)
    head = {key for key, _ in model.named_parameters() if in_head(model, key)} - model.all_tied_weights_keys.keys()
    model.config.random_head = head <= set(unfit)
    if unfit := [key for key in unfit if not (model.config.random_head and in_head(model, key))]:
        raise ValueError(f"{name}: weights do not match the configuration: {', '.join(unfit[:3])}")
    return model


def _load(name: str | Path, **changes: float) -> tuple[PreTrainedModel, list[str]]:
    """Return the model and the names of weights that are missing or have another shape."""
    try:
        # `ignore_mismatched_sizes` reports weights of other shapes by name instead of raising.
        model, loading = AutoModelForMaskedLM.from_pretrained(
            located(str(name)), output_loading_info=True, ignore_mismatched_sizes=True, **changes
        )
    except OSError as error:
        raise FileNotFoundError(f"{name}: no model in that folder or on the hub ({error})") from error
    except SafetensorError as error:
        raise ValueError(f"{name}: weights are truncated or damaged ({error})") from error
    if model.config.model_type not in ENCODERS:
        raise ValueError(f"{name}: must be one of {', '.join(ENCODERS)}, got {model.config.model_type}")
    for weight in model.parameters():
        # Parts of one stored tensor could not be saved by their names.
        if weight.untyped_storage().nbytes() > weight.nbytes:
            weight.data = weight.data.clone()
    return model, sorted(loading["missing_keys"]) + sorted(str(key[0]) for key in loading["mismatched_keys"])


def in_head(model: PreTrainedModel, name: str) -> bool:
    """Return whether a weight of this name belongs to the vocabulary head rather than to the encoder."""
    return not name.startswith(f"{model.base_model_prefix}.")


class OneDNNLinear(nn.Linear):
    """Linear layer through oneDNN, as compiled models have it: on AMD's processors MKL's products take twice the time."""

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled() or x.dtype != torch.float32:
            return super().forward(x)
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")


def for_evaluation(model: PreTrainedModel) -> PreTrainedModel:
    """Return a model in evaluation mode, on the accelerator if there is one, else with oneDNN's linear layers."""
    if torch.accelerator.is_available():
        model.to(torch.accelerator.current_accelerator())
    elif torch.backends.mkldnn.is_available():
        for module in model.modules():
            if type(module) is nn.Linear:
                module.__class__ = OneDNNLinear
    return model.eval()


def load_entmax_model(folder: str | Path) -> tuple[PreTrainedModel, AttentionControl]:
    """Load a trained model with its normaliser in every head, in evaluation mode, onto the accelerator if there is one."""
    model = load_model(folder)
    # Shipped checkpoints from before the key have 1.5-entmax.
    alpha = getattr(model.config, ALPHA, 1.5)
    return for_evaluation(model), use_attention(model, Entmax(alpha))


def check_length(model: PreTrainedModel, length: int) -> None:
    """Check that the model has enough positions for sequences of ``length`` tokens.

    Raises
    ------
    ValueError
        If it has fewer.
    """
    # RoBERTa's positions begin behind that of padding, BERT's at 0, and rotary ones are no weights.
    learned = [module for name, module in model.named_modules() if name.endswith("position_embeddings")]
    padding = next((module.padding_idx for module in learned if isinstance(module, nn.Embedding)), None)
    positions = model.config.max_position_embeddings - (0 if padding is None else padding + 1)
    if length > positions:
        raise ValueError(f"sequences must have at most {positions} tokens, the model's positions, got {length}")


def masked_loss(
    model: PreTrainedModel, input_ids: Tensor, labels: Tensor, reduction: str = "mean", **inputs: Tensor
) -> Tensor:
    """Return the cross-entropy in nats at the places where ``labels [B, n]`` is not -100.

    Parameters
    ----------
    reduction : str
        ``"mean"`` over places, or ``"none"`` for the value of each place.
    inputs
        To the model, such as ``attention_mask``.
    """
    chosen = labels != IGNORED

    def keep_chosen(module: nn.Module, arguments: tuple, output: ModelOutput) -> ModelOutput:
        # The head maps each hidden state by itself, and most of its time would go to places that are not predicted.
        output.last_hidden_state = output.last_hidden_state[chosen][None]
        return output

    hook = model.base_model.register_forward_hook(keep_chosen)
    try:
        # Not `model(...)`: training sets the loss as the model's `forward`.
        scores = type(model).forward(model, input_ids=input_ids, **inputs).logits[0].float()
    finally:
        hook.remove()
    return nn.functional.cross_entropy(scores, labels[chosen], reduction=reduction)
