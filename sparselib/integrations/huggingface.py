"""Entmax attention and predicted graphs in Hugging Face models, through their attention interface.

>>> control = use_attention(model)                    # every attention layer now uses 1.5-entmax
>>> with control.observing(show): model(ids)          # show(call, mask): q, k and the mask of every layer
>>> with control.restricted_to(graph): model(ids)     # every layer attends along graph(call)
>>> with control.visiting(blocks): model(ids)         # block-sparse kernel over blocks(layer, q, k, lengths)
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.utils.generic import TransformersKwargs

from sparselib.integrations.control import AttentionControl, VisitedBlocks
from sparselib.normalizers import Normalizer, entmax15

NAME = "sparselib"
#: Arguments of the interface that do not change scores: about outputs, caches and losses, or told by the mask too.
_WITHOUT_EFFECT = {
    *(TransformersKwargs.__annotations__.keys() - {"cu_seq_lens_q", "cu_seq_lens_k", "seq_idx", "is_causal"}),
    "cache_position",
    "deterministic",
    "sliding_window",
    "use_cache",
}


def use_attention(model: PreTrainedModel, normalizer: Normalizer = entmax15) -> AttentionControl:
    """Make every attention layer of ``model`` use ``normalizer``; layers are numbered in the order they are called.

    Raises ``ValueError`` if the model does not compute its attention through the interface (it would silently go on with
    softmax), or asks it for what is not supported, as a bias, a soft cap or sinks. The model is then as it was.
    """
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, _boolean_mask)
    control = AttentionControl(normalizer)
    with _undone_by_an_error(model):
        model.set_attn_implementation(NAME)
        called = _modules_that_attend(model)
        if not called:
            raise ValueError(
                f"{type(model).__name__} ignores the attention interface of transformers: it can't be changed"
            )
    for layer, module in enumerate(called):
        module.sparselib_control, module.sparselib_layer = control, layer
    control.layers = len(called)
    return control


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **others: object,
) -> tuple[Tensor, Tensor | None]:
    """The function behind the name: ``[B, H, Q, D]`` in, ``[B, Q, H, D]`` and the weights out, as transformers wants it."""
    _refuse_what_changes_scores(module, query, attention_mask, others)
    control: AttentionControl = module.sparselib_control
    if isinstance(control.mode, VisitedBlocks):
        if module.training and dropout:
            raise ValueError(f"dropout {dropout} of attention weights: block-sparse attention has none; set it to 0")
        output = control.visited(module.sparselib_layer, query, key, value, attention_mask, scaling)
        return output.transpose(1, 2).contiguous(), None
    if key.shape[1] != query.shape[1]:
        key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
    weights = control.weights(module.sparselib_layer, query, key, attention_mask, scaling)
    output = nn.functional.dropout(weights, dropout, training=module.training) @ value
    return output.transpose(1, 2).contiguous(), weights


def _refuse_what_changes_scores(
    module: nn.Module, query: Tensor, attention_mask: Tensor | None, others: dict[str, object]
) -> None:
    """Raise ``ValueError`` for any argument that would be ignored, naming it, and for masks that are no masks."""
    unknown = [name for name, value in others.items() if value is not None and name not in _WITHOUT_EFFECT]
    if others.get("is_causal") is not None and (attention_mask is not None or not others["is_causal"]):
        unknown.remove("is_causal")  # the mask says so, or there is nothing to say
    if unknown:
        name = type(module).__name__
        raise ValueError(f"{name} passes {', '.join(unknown)} to its attention: not supported, and not to be left out")
    if attention_mask is not None and attention_mask.dtype != torch.bool:
        name = type(module).__name__
        raise ValueError(f"{name} adds a mask of {attention_mask.dtype} to its scores: only boolean ones are supported")


@contextmanager
def _undone_by_an_error(model: PreTrainedModel) -> Iterator[None]:
    """If the block fails, every part of the model has the attention that it had before."""
    configs = {id(part.config): part.config for part in model.modules() if isinstance(part, PreTrainedModel)}
    before = [(config, config._attn_implementation) for config in configs.values()]
    try:
        yield
    except BaseException:
        for config, implementation in before:
            config._attn_implementation = implementation
        raise


def _boolean_mask(*args, **kwargs) -> Tensor | None:
    """transformers' boolean mask, without its short cut that leaves a plain causal mask to the attention function."""
    return sdpa_mask(*args, **(kwargs | {"allow_is_causal_skip": False}))


def _modules_that_attend(model: PreTrainedModel) -> list[nn.Module]:
    """Run four tokens through the model and list the modules that call the interface, in order."""
    called: list[nn.Module] = []

    def probe(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **others):
        _refuse_what_changes_scores(module, query, attention_mask, others)
        called.append(module)
        return torch.zeros_like(query.transpose(1, 2)), None

    AttentionInterface.register(NAME, probe)
    training = model.training
    tokens = torch.full((1, 4), 5, device=model.device)
    inputs = {"input_ids": tokens} | ({"decoder_input_ids": tokens} if model.config.is_encoder_decoder else {})
    try:
        with torch.no_grad():
            model.eval()(**inputs)
    finally:
        model.train(training)
        AttentionInterface.register(NAME, _attend)
    return called
