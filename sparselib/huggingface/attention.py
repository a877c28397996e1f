"""Entmax attention and predicted graphs in Hugging Face models, through transformers' attention interface.

::

    control = use_attention(model)                    # every attention layer now computes 1.5-entmax
    with control.observing(show): model(ids)          # calls show(call, mask) with each layer's q, k and mask
    with control.restricted_to(graph): model(ids)     # every layer attends only to the pairs of graph(call)
    with control.visiting(blocks): model(ids)         # block-sparse kernel over blocks(layer, q, k, lengths)
"""

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.utils.generic import TransformersKwargs

from sparselib.control import AttentionControl, TokenPairs, VisitedBlocks
from sparselib.dense_attention import Scoring
from sparselib.huggingface.probe import compare_with_eager
from sparselib.normalizers import Normalizer, entmax15

__all__ = ["use_attention"]

NAME = "sparselib"
#: Arguments of the interface that do not change scores: they concern outputs, caches and losses, or the mask shows them too.
_WITHOUT_EFFECT = {
    *(TransformersKwargs.__annotations__.keys() - {"cu_seq_lens_q", "cu_seq_lens_k", "seq_idx", "is_causal"}),
    "cache_position",
    "deterministic",
    "return_dict",
    "sliding_window",
    "use_cache",
}


@dataclass
class _Place:
    """A module's control and layer numbers. Copies of the module share it, so one control acts on all of them."""

    control: AttentionControl
    #: More than one if layers share the module's weights.
    layers: list[int] = field(default_factory=list)
    calls: int = 0

    def __deepcopy__(self, memo: dict) -> "_Place":
        return self

    def next_layer(self, module: nn.Module) -> int:
        """Return the layer number of this call; layers with shared weights take turns.

        Raise ``ValueError`` in the second run of a checkpointed layer, which would break the order of turns.
        """
        if len(self.layers) > 1 and torch._C._current_graph_task_id() != -1:
            raise ValueError(
                f"{type(module).__name__} must not use gradient checkpointing, because {len(self.layers)} layers share its "
                "weights; call model.gradient_checkpointing_disable()"
            )
        self.calls += 1
        return self.layers[(self.calls - 1) % len(self.layers)]


def use_attention(
    model: PreTrainedModel, normalizer: Normalizer = entmax15, inputs: Mapping[str, Tensor] | None = None
) -> AttentionControl:
    """Make every attention layer of a model use a normaliser; layers are numbered in the order in which they are called.

    First the model runs on a few inputs, once with its own eager attention and once through this module with softmax. If the
    outputs differ, the model is refused. So is a model that computes attention itself, in all layers or in some.

    Parameters
    ----------
    model : PreTrainedModel
        Changed in place.
    normalizer : callable
        From scores ``[..., K]`` to probabilities of the same shape.
    inputs : mapping of Tensors, optional
        Inputs for this first run, for models whose inputs cannot be guessed from their config. They must reach all attention
        layers that will ever be called.

    Returns
    -------
    AttentionControl
        Changes what the layers do while the model runs. A later call of `use_attention` or ``set_attn_implementation`` ends
        its control of the model.

    Raises
    ------
    ValueError
        If the model is refused; the message gives the reason, and the model is unchanged.

    Examples
    --------
    >>> from transformers import RobertaConfig, RobertaModel
    >>> tiny = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 99}
    >>> model = RobertaModel(RobertaConfig(**tiny)).eval()
    >>> use_attention(model).layers
    2
    """
    AttentionMaskInterface.register(NAME, _boolean_mask)
    control = AttentionControl(normalizer)
    with restored_on_error(model):
        softmax = _Place(AttentionControl(lambda scores: scores.softmax(-1)), [0])
        called = compare_with_eager(model, NAME, partial(_attend, place=softmax), _attend, inputs)
    places: dict[nn.Module, _Place] = {}
    for layer, module in enumerate(called):
        places.setdefault(module, _Place(control)).layers.append(layer)
    for module, place in places.items():
        module.sparselib_place = place
    shared = weakref.WeakSet(module for module, place in places.items() if len(place.layers) > 1)
    for part in {model, model.base_model} if shared else ():
        part.register_forward_pre_hook(partial(_restart_turns, shared))
    control.layers = len(called)
    control.around = partial(_acting, control, weakref.ref(model), weakref.ref(called[0]))
    return control


def _restart_turns(modules: weakref.WeakSet, model: nn.Module, arguments: tuple) -> None:
    """Restart the turns of layers with shared weights, also after a forward pass that ended with an error."""
    for module in modules:
        module.sparselib_place.calls = 0


@contextmanager
def _acting(
    control: AttentionControl, model: weakref.ref[PreTrainedModel], first: weakref.ref[nn.Module]
) -> Iterator[None]:
    """Check that the control acts on its model, and keep the mode in which checkpointed layers run in a later backward pass.

    Raise ``ValueError`` if the control does not act on its model any more.
    """
    acted_on, module = model(), first()
    if acted_on is None or module is None:
        raise ValueError("`control` must act on an existing model, but its model was deleted; call use_attention again")
    if module.sparselib_place.control is not control:
        raise ValueError(
            "`control` must be the model's latest, but use_attention gave the model another one; use that control"
        )
    if (implementation := acted_on.config._attn_implementation) != NAME:
        raise ValueError(
            f"`control` needs the attention implementation {NAME!r}, but the model's was set to {implementation!r}; "
            "call use_attention again"
        )
    checkpointed = [part for part in acted_on.modules() if hasattr(part, "_gradient_checkpointing_func")]
    originals = [part._gradient_checkpointing_func for part in checkpointed]
    for part, original in zip(checkpointed, originals, strict=True):
        part._gradient_checkpointing_func = partial(_checkpoint, original, control, control.mode)
    try:
        yield
    finally:
        for part, original in zip(checkpointed, originals, strict=True):
            part._gradient_checkpointing_func = original


def _checkpoint(original, control: AttentionControl, mode: TokenPairs | VisitedBlocks, function, *arguments, **options):
    """Call the original checkpointing of a function that runs in `mode` each time; observers are called the first time only."""

    def in_mode(*inner_arguments, **inner_options):
        is_rerun = torch._C._current_graph_task_id() != -1
        before = control.mode
        control.mode = replace(mode, observer=None) if is_rerun and isinstance(mode, TokenPairs) else mode
        try:
            return function(*inner_arguments, **inner_options)
        finally:
            control.mode = before

    return original(in_mode, *arguments, **options)


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    place: _Place | None = None,
    **options: object,
) -> tuple[Tensor, Tensor | None]:
    """Compute attention for transformers: from ``[B, H, Q, D]`` to the output ``[B, Q, H, D]`` and the weights.

    `place` overrides the module's own.
    """
    visible, scoring = _mask_and_scoring(module, query, key, attention_mask, scaling, options)
    place = place or getattr(module, "sparselib_place", None)
    if place is None:
        raise ValueError(
            f"`inputs` of use_attention must reach every attention layer, but did not reach {type(module).__name__}; pass "
            "inputs that do"
        )
    control, layer = place.control, place.next_layer(module)
    if isinstance(control.mode, VisitedBlocks):
        if module.training and dropout:
            raise ValueError(f"`dropout` of attention weights must be 0 for block-sparse attention, got {dropout}")
        if not scoring.is_scale_alone:
            raise ValueError(
                f"{type(module).__name__} must score by scaled dot products for block-sparse attention, but has a bias, a "
                "soft cap or sinks; use `restricted_to()`"
            )
        output = control.visited(layer, query, key, value, visible, scoring.scale)
        return output.transpose(1, 2).contiguous(), None
    heads = query.shape[1]
    key, value = (x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1) for x in (key, value))
    weights = control.weights(layer, query, key, visible, scoring)
    output = nn.functional.dropout(weights, dropout, training=module.training).to(value.dtype) @ value
    return output.transpose(1, 2).contiguous(), weights


def _mask_and_scoring(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None,
    options: dict[str, object],
) -> tuple[Tensor | None, Scoring]:
    """Return the visible pairs and the scoring; raise ``ValueError`` for any argument that would be ignored, naming it."""
    given = {name: value for name, value in options.items() if value is not None and name not in _WITHOUT_EFFECT}
    bias, softcap, sinks = (given.pop(name, None) for name in ("position_bias", "softcap", "s_aux"))
    if "is_causal" in given and (attention_mask is not None or not given["is_causal"]):
        del given["is_causal"]  # either the mask is causal already, or nothing is
    name = type(module).__name__
    if given:
        raise ValueError(
            f"{name} passes {', '.join(given)} to its attention, which changes scores and is not supported"
        )
    if query.ndim != 4:
        raise ValueError(f"`query` must be [B, H, Q, D], got {tuple(query.shape)} from {name}")
    visible, added = _split_mask(name, attention_mask, key.shape[2])
    if bias is not None and added is not None:
        bias = bias + added
    return visible, Scoring(scaling, softcap, added if bias is None else bias, sinks)


def _split_mask(name: str, mask: Tensor | None, keys: int) -> tuple[Tensor | None, Tensor | None]:
    """Split an additive mask into the visible pairs and a bias; a boolean mask has no bias."""
    if mask is None:
        return None, None
    if mask.shape[-1] > keys:
        mask = mask[..., :keys]
    if mask.dtype == torch.bool:
        return mask, None
    if not mask.is_floating_point():
        raise ValueError(
            f"`attention_mask` must be boolean or a float tensor to add to scores, got {mask.dtype} from {name}"
        )
    hidden = mask <= torch.finfo(mask.dtype).min / 2
    added = mask.masked_fill(hidden, 0.0)
    return ~hidden, added if added.any() else None


@contextmanager
def restored_on_error(model: PreTrainedModel) -> Iterator[None]:
    """Restore the attention and control of every part of the model if the block raises."""
    configs = {id(part.config): part.config for part in model.modules() if isinstance(part, PreTrainedModel)}
    before = [(config, config._attn_implementation) for config in configs.values()]
    places = [(module, getattr(module, "sparselib_place", None)) for module in model.modules()]
    try:
        yield
    except BaseException:
        for config, implementation in before:
            config._attn_implementation = implementation
        for module, place in places:
            module.__dict__.pop("sparselib_place", None)
            if place is not None:
                module.sparselib_place = place
        raise


def _boolean_mask(*args, **kwargs) -> Tensor | None:
    """Return transformers' boolean mask, never None for a plain causal mask, which sdpa would infer."""
    return sdpa_mask(*args, **(kwargs | {"allow_is_causal_skip": False}))
