"""Entmax attention and predicted graphs in Hugging Face models, through their attention interface.

::

    control = use_attention(model)                    # every attention layer now uses 1.5-entmax
    with control.observing(show): model(ids)          # show(call, mask): q, k and the mask of every layer
    with control.restricted_to(graph): model(ids)     # every layer attends along graph(call)
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
#: Arguments of the interface that do not change scores: about outputs, caches and losses, or told by the mask too.
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
    """Which layers of which control a module is. A copy of the module has the same place: one control acts on both."""

    control: AttentionControl
    #: More than one where layers share their weights.
    layers: list[int] = field(default_factory=list)
    calls: int = 0

    def __deepcopy__(self, memo: dict) -> "_Place":
        return self

    def next_layer(self, module: nn.Module) -> int:
        """The layer of this call: those of shared weights take turns.

        Raises ``ValueError`` where turns are lost, in the second run of a checkpointed layer.
        """
        if len(self.layers) > 1 and torch._C._current_graph_task_id() != -1:
            raise ValueError(f"{type(module).__name__} is {len(self.layers)} layers: not with gradient checkpointing")
        self.calls += 1
        return self.layers[(self.calls - 1) % len(self.layers)]


def use_attention(
    model: PreTrainedModel, normalizer: Normalizer = entmax15, inputs: Mapping[str, Tensor] | None = None
) -> AttentionControl:
    """Make every attention layer of ``model`` use ``normalizer``; layers are numbered in the order they are called.

    First the model sees a few inputs, once with its own eager attention and once through this module with softmax: what does
    not come to the same is refused. So is attention that the model computes by itself, in all layers or in some.

    Parameters
    ----------
    inputs : what the model is called with then, for models whose inputs can't be guessed from their config
        All attention layers that will ever be called have to be reached.

    Raises ``ValueError``, with the reason, for a model that is refused. The model is then as it was. A control that a second
    call or ``set_attn_implementation`` has replaced refuses to be used.

    >>> from transformers import RobertaConfig, RobertaModel
    >>> tiny = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 99}
    >>> model = RobertaModel(RobertaConfig(**tiny)).eval()
    >>> use_attention(model).layers
    2
    """
    AttentionMaskInterface.register(NAME, _boolean_mask)
    control = AttentionControl(normalizer)
    with undone_by_an_error(model):
        softmax = _Place(AttentionControl(lambda scores: scores.softmax(-1)), [0])
        called = compare_with_eager(model, NAME, partial(_attend, place=softmax), _attend, inputs)
    places: dict[nn.Module, _Place] = {}
    for layer, module in enumerate(called):
        places.setdefault(module, _Place(control)).layers.append(layer)
    for module, place in places.items():
        module.sparselib_place = place
    shared = weakref.WeakSet(module for module, place in places.items() if len(place.layers) > 1)
    for part in {model, model.base_model} if shared else ():
        part.register_forward_pre_hook(partial(_begin, shared))
    control.layers = len(called)
    control.around = partial(_acting, control, weakref.ref(model), weakref.ref(called[0]))
    return control


def _begin(modules: weakref.WeakSet, model: nn.Module, arguments: tuple) -> None:
    """Turns of shared layers begin anew, also after a forward pass that an error ended."""
    for module in modules:
        module.sparselib_place.calls = 0


@contextmanager
def _acting(
    control: AttentionControl, model: weakref.ref[PreTrainedModel], first: weakref.ref[nn.Module]
) -> Iterator[None]:
    """Inside, layers that run again in a backward pass, checkpointed, do so in the mode of now, whenever that is.

    Raises ``ValueError`` if the control does not act on its model any more.
    """
    acted_on, module = model(), first()
    if acted_on is None or module is None:
        raise ValueError("the model of this control is gone")
    if module.sparselib_place.control is not control:
        raise ValueError("this control does not act any more: use_attention gave the model another one")
    if (now := acted_on.config._attn_implementation) != NAME:
        raise ValueError(f"this control does not act: the model's attention was set to {now!r}")
    checkpointed = [part for part in acted_on.modules() if hasattr(part, "_gradient_checkpointing_func")]
    own = [part._gradient_checkpointing_func for part in checkpointed]
    for part, function in zip(checkpointed, own, strict=True):
        part._gradient_checkpointing_func = partial(_checkpoint, function, control, control.mode)
    try:
        yield
    finally:
        for part, function in zip(checkpointed, own, strict=True):
            part._gradient_checkpointing_func = function


def _checkpoint(own, control: AttentionControl, mode: TokenPairs | VisitedBlocks, function, *arguments, **others):
    """``own`` checkpointing of ``function``, in ``mode`` whenever it runs; an observer sees the first time only."""

    def in_mode(*inner, **more):
        again = torch._C._current_graph_task_id() != -1
        before = control.mode
        control.mode = replace(mode, observer=None) if again and isinstance(mode, TokenPairs) else mode
        try:
            return function(*inner, **more)
        finally:
            control.mode = before

    return own(in_mode, *arguments, **others)


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    place: _Place | None = None,
    **others: object,
) -> tuple[Tensor, Tensor | None]:
    """The function behind the name: ``[B, H, Q, D]`` in, ``[B, Q, H, D]`` and the weights out, as transformers wants it.

    ``place`` stands in for the module's own, as long as it has none.
    """
    visible, scoring = _understood(module, query, key, attention_mask, scaling, others)
    place = place or getattr(module, "sparselib_place", None)
    if place is None:
        raise ValueError(
            f"{type(module).__name__} was not called by the inputs that use_attention saw: give it inputs that reach it"
        )
    control, layer = place.control, place.next_layer(module)
    if isinstance(control.mode, VisitedBlocks):
        if module.training and dropout:
            raise ValueError(f"dropout {dropout} of attention weights: block-sparse attention has none; set it to 0")
        if not scoring.is_scale_alone:
            raise ValueError(
                f"{type(module).__name__} has a bias, a soft cap or sinks: block-sparse attention has none"
            )
        output = control.visited(layer, query, key, value, visible, scoring.scale)
        return output.transpose(1, 2).contiguous(), None
    key, value = (_one_for_each_query_head(x, query) for x in (key, value))
    weights = control.weights(layer, query, key, visible, scoring)
    output = nn.functional.dropout(weights, dropout, training=module.training).to(value.dtype) @ value
    return output.transpose(1, 2).contiguous(), weights


def _one_for_each_query_head(x: Tensor, query: Tensor) -> Tensor:
    groups = query.shape[1] // x.shape[1]
    return x if groups == 1 else x.repeat_interleave(groups, dim=1)


def _understood(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None,
    others: dict[str, object],
) -> tuple[Tensor | None, Scoring]:
    """What a query may see and how scores are made. Raises ``ValueError`` for any argument that would be ignored, naming it."""
    asked = {name: value for name, value in others.items() if value is not None and name not in _WITHOUT_EFFECT}
    bias, softcap, sinks = (asked.pop(name, None) for name in ("position_bias", "softcap", "s_aux"))
    if "is_causal" in asked and (attention_mask is not None or not asked["is_causal"]):
        del asked["is_causal"]  # the mask says so, or there is nothing to say
    name = type(module).__name__
    if asked:
        raise ValueError(f"{name} passes {', '.join(asked)} to its attention: not supported, and not to be left out")
    if query.ndim != 4:
        raise ValueError(f"{name} attends with queries of {tuple(query.shape)}: [B, H, Q, D] is supported")
    visible, added = _separated(name, attention_mask, key.shape[2])
    if bias is not None and added is not None:
        bias = bias + added
    return visible, Scoring(scaling, softcap, added if bias is None else bias, sinks)


def _separated(name: str, mask: Tensor | None, keys: int) -> tuple[Tensor | None, Tensor | None]:
    """A mask that is added to scores as what hides pairs, and what else it adds; a boolean one says the first alone."""
    if mask is None:
        return None, None
    if mask.shape[-1] > keys:
        mask = mask[..., :keys]
    if mask.dtype == torch.bool:
        return mask, None
    if not mask.is_floating_point():
        raise ValueError(f"{name} has a mask of {mask.dtype}: booleans, or numbers to add to scores, are supported")
    hidden = mask <= torch.finfo(mask.dtype).min / 2
    added = mask.masked_fill(hidden, 0.0)
    return ~hidden, added if added.any() else None


@contextmanager
def undone_by_an_error(model: PreTrainedModel) -> Iterator[None]:
    """If the block fails, every part of the model has the attention that it had before, and the control that it had."""
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
    """transformers' boolean mask, without its short cut that leaves a plain causal mask to the attention function."""
    return sdpa_mask(*args, **(kwargs | {"allow_is_causal_skip": False}))
