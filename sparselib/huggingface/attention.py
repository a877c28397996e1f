"""Entmax attention and predicted graphs in Hugging Face models, through transformers' attention interface.

::

    control = use_attention(model)                    # every attention layer now computes 1.5-entmax
    with control.observing(show): model(ids)          # calls show(call, mask) with each layer's q, k and mask
    with control.restricted_to(graph): model(ids)     # every layer attends only to the pairs of graph(call)
    with control.visiting(blocks): model(ids)         # block-sparse kernel over blocks(layer, q, k, lengths)
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from sparselib.control import AttentionControl, VisitedBlocks
from sparselib.control.open_blocks import backward_pass
from sparselib.huggingface.arguments import mask_and_scoring
from sparselib.huggingface.checked_model import Guard, check_model, restored_on_error
from sparselib.huggingface.checkpointing import keep_modes, may_be_recomputed
from sparselib.huggingface.own_normalizer import NAME, keep_normalizer, mark, normalizer_of_module, own_normalizer
from sparselib.huggingface.probe import PROBE, compare_with_eager
from sparselib.huggingface.requested import recorded_outputs, weights_named, weights_requested
from sparselib.normalizers import Normalizer

__all__ = ["use_attention"]


@dataclass
class _Place:
    """A module's control and layer numbers. Copies of the module share it, so one control acts on all of them."""

    control: AttentionControl
    #: More than one if layers share the module's weights, none if the first run did not reach the module.
    layers: list[int] = field(default_factory=list)
    #: Calls since the model's forward pass began, while it is traced.
    turn: int = 0
    #: Whether the model's last forward pass recorded outputs with hooks.
    records: bool = False

    def __deepcopy__(self, memo: dict) -> "_Place":
        return self

    def next_layer(self, module: nn.Module) -> int:
        """Return the layer number of this call; layers with shared weights take turns.

        Raise ``ValueError`` in the second run of a checkpointed layer, which would break the order of turns.
        """
        if len(self.layers) > 1 and backward_pass() != -1:
            raise ValueError(
                f"{type(module).__name__} must not use gradient checkpointing, because {len(self.layers)} layers share its "
                "weights; call model.gradient_checkpointing_disable()"
            )
        if len(self.layers) == 1:
            return self.layers[0]
        if torch.compiler.is_compiling():
            self.turn += 1
            return self.layers[(self.turn - 1) % len(self.layers)]
        calls = _CALLS.get()
        call = calls.get(id(self), 0)
        _CALLS.set(calls | {id(self): call + 1})
        return self.layers[call % len(self.layers)]


#: Calls of each place with shared weights since the model's forward pass began, in this thread or task; never changed in place.
_CALLS: ContextVar[dict[int, int]] = ContextVar("calls", default={})  # noqa: B039


def use_attention(
    model: PreTrainedModel,
    normalizer: Normalizer | Sequence[Normalizer] | None = None,
    inputs: Mapping[str, Tensor] | None = None,
) -> AttentionControl:
    """Make every attention layer of a model use a normaliser; layers are numbered in the order in which they are called.

    An alpha-entmax becomes part of the model's configuration, so that ``save_pretrained`` keeps it and ``from_pretrained`` of a
    process that has imported this package loads the model with it; without this package, loading fails.

    Layers return no weights unless the model is called with ``output_attentions=True``, as under PyTorch's own attention.

    First the model runs on a few inputs, once with its own eager attention and once through this module with softmax. If the
    outputs differ, the model is refused. So is a model that computes attention itself, in all layers or in some.

    Parameters
    ----------
    model : PreTrainedModel
        Changed in place.
    normalizer : callable, or sequence of callables
        From scores ``[..., K]`` to probabilities of the same shape. A sequence has one for each layer, such as
        :func:`~sparselib.huggingface.global_entmax` of a ModernBERT. By default the model's own, if it was saved with one, else
        1.5-entmax.
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
        If the model is refused, or `normalizer` has another number of entries than the model has attention layers; the message
        gives the reason, and the model is unchanged.

    Examples
    --------
    >>> from transformers import RobertaConfig, RobertaModel
    >>> tiny = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 99}
    >>> model = RobertaModel(RobertaConfig(**tiny)).eval()
    >>> use_attention(model).layers
    2
    """
    check_model(model)
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ValueError(
            f"`inputs` must be a mapping from argument names to tensors, got {type(inputs).__name__}; pass "
            '{"input_ids": ids} for ids alone'
        )
    normalizer = own_normalizer(model.config) if normalizer is None else normalizer
    control = AttentionControl(list(normalizer) if isinstance(normalizer, Sequence) else normalizer)
    with restored_on_error(model):
        softmax = _Place(AttentionControl(lambda scores: scores.softmax(-1)), [0])
        called, control.cross_layers = compare_with_eager(model, NAME, partial(_attend_at, softmax), inputs)
        if isinstance(normalizer, Sequence) and len(normalizer) != len(called):
            raise ValueError(
                f"`normalizer` must have one entry for each of the {len(called)} attention layers, got {len(normalizer)}"
            )
    places: dict[nn.Module, _Place] = {}
    for layer, module in enumerate(called):
        places.setdefault(module, _Place(control)).layers.append(layer)
    unreached = _Place(control)
    for module in model.modules():
        module.sparselib_place = places.get(module, unreached)
    if any(len(place.layers) > 1 for place in places.values()):
        for part in {model, model.base_model}:
            if _restart_turns not in part._forward_pre_hooks.values():
                part.register_forward_pre_hook(_restart_turns)
    keep_modes(model)
    keep_normalizer(model.config, control.normalizer, len(called))
    control.layers = len(called)
    control.around = Guard(control, model, called[0])
    return control


def _restart_turns(model: nn.Module, arguments: tuple) -> None:
    """Restart the turns of layers with shared weights, also after a forward pass that ended with an error."""
    if torch.compiler.is_compiling():
        for module in model.modules():
            if hasattr(module, "sparselib_place"):
                module.sparselib_place.turn = 0
        return
    places = {id(getattr(module, "sparselib_place", None)) for module in model.modules()}
    _CALLS.set({place: calls for place, calls in _CALLS.get().items() if place not in places})


def _attend(module: nn.Module, *arguments, **options: object) -> tuple[Tensor, Tensor | None]:
    """Compute attention for transformers, with the arguments of :func:`_attend_at` after `place`."""
    probe = None if torch.compiler.is_compiling() else PROBE.get()
    attend = probe or partial(_attend_at, getattr(module, "sparselib_place", None) or _loaded(module))
    return attend(module, *arguments, **options)


def _loaded(module: nn.Module) -> _Place:
    """Return the place of a module of a model that was loaded with this attention, which nothing controls yet."""
    mark(module.config)
    module.sparselib_place = _Place(AttentionControl(normalizer_of_module(module)), [0])
    return module.sparselib_place


def _attend_at(
    place: _Place,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **options: object,
) -> tuple[Tensor, Tensor | None]:
    """Compute attention under the control of a place: from ``[B, H, Q, D]`` to the output ``[B, Q, H, D]`` and the weights."""
    visible, scoring = mask_and_scoring(module, query, key, attention_mask, scaling, options)
    if not place.layers:
        raise ValueError(
            f"`inputs` of use_attention must reach every attention layer, but did not reach {type(module).__name__}; pass "
            "inputs that do"
        )
    control, layer = place.control, place.next_layer(module)
    if control.is_open and getattr(module, "_is_replica", False):
        raise ValueError(
            "`restricted_to()`, `observing()` and `visiting()` do not reach the threads of DataParallel; use "
            "DistributedDataParallel"
        )
    recomputable = may_be_recomputed(module)
    if isinstance(control.active_mode, VisitedBlocks):
        if module.training and dropout:
            raise ValueError(f"`dropout` of attention weights must be 0 for block-sparse attention, got {dropout}")
        if scoring.sinks is not None:
            raise ValueError(
                f"`s_aux` of {type(module).__name__} must be None for block-sparse attention, which has no sinks; use "
                "`restricted_to()`"
            )
        if weights_named(options):
            raise ValueError(
                "`output_attentions` must be False inside `visiting()` and `to_blocks()`, which compute no weights; use "
                "`restricted_to()`, or `with sparse:` for a sparsified model"
            )
        is_padding = attention_mask is None or getattr(attention_mask, _IS_PADDING, False)
        output = control.visited(layer, query, key, value, visible, scoring, recomputable, is_padding)
        return output.transpose(1, 2).contiguous(), None
    heads = query.shape[1]
    key, value = (x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1) for x in (key, value))
    if backward_pass() == -1:
        place.records = recorded_outputs() is not None
    if not (module.training and dropout) and not weights_requested(options, place.records):
        output = control.output(layer, query, key, value, visible, scoring, recomputable=recomputable)
        return output.transpose(1, 2).contiguous(), None
    weights = control.weights(layer, query, key, visible, scoring, recomputable=recomputable)
    output = nn.functional.dropout(weights, dropout, training=module.training).to(value.dtype) @ value
    return output.transpose(1, 2).contiguous(), weights


def _boolean_mask(*args, **kwargs) -> Tensor | None:
    """Return transformers' boolean mask, never None for a plain causal mask, which sdpa would infer."""
    mask = sdpa_mask(*args, **(kwargs | {"allow_is_causal_skip": False}))
    if mask is not None:
        setattr(mask, _IS_PADDING, True)
    return mask


#: Attribute of masks that were made from a mask of tokens. Other masks are the caller's, of pairs, and may hide a token as key
#: that attends as query.
_IS_PADDING = "sparselib_is_padding"


#: Registered on import, so that a pickled model can be loaded in a process that did not call `use_attention`.
AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, _boolean_mask)
