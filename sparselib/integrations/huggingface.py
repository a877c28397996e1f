"""Entmax attention and predicted graphs in Hugging Face models, through their attention interface.

>>> control = use_attention(model)                    # every attention layer now uses 1.5-entmax
>>> with control.observing(print_shapes): model(ids)  # sees q and k of every layer
>>> with control.restricted_to(graph): model(ids)     # every layer attends along graph(layer, q, k, visible)
>>> with control.visiting(blocks): model(ids)         # block-sparse kernel over blocks(layer, q, k, lengths)
"""

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from sparselib.dense_attention import Normalizer
from sparselib.integrations.control import AttentionControl
from sparselib.normalizers import entmax15

NAME = "sparselib"


def use_attention(model: PreTrainedModel, normalizer: Normalizer = entmax15) -> AttentionControl:
    """Make every attention layer of ``model`` use ``normalizer``; layers are numbered in the order they are called.

    Raises
    ------
    ValueError
        If the model does not compute its attention through the interface (it would silently go on with softmax).
    """
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, _boolean_mask)
    model.set_attn_implementation(NAME)
    control = AttentionControl(normalizer)
    called = _modules_that_attend(model)
    if not called:
        raise ValueError(f"{type(model).__name__} ignores the attention interface of transformers: it can't be changed")
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
    **_: object,
) -> tuple[Tensor, Tensor | None]:
    """The function behind the name: ``[B, H, Q, D]`` in, ``[B, Q, H, D]`` and the weights out, as transformers wants it."""
    control: AttentionControl = module.sparselib_control
    if control.block_graph is not None:
        if module.training and dropout:
            raise ValueError(f"dropout {dropout} of attention weights: block-sparse attention has none; set it to 0")
        output = control.visited(module.sparselib_layer, query, key, value, attention_mask, scaling)
        return output.transpose(1, 2).contiguous(), None
    if key.shape[1] != query.shape[1]:
        key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
    weights = control.weights(module.sparselib_layer, query, key, attention_mask, scaling)
    output = nn.functional.dropout(weights, dropout, training=module.training) @ value
    return output.transpose(1, 2).contiguous(), weights


def _boolean_mask(*args, **kwargs) -> Tensor | None:
    """transformers' boolean mask, without its short cut that leaves a plain causal mask to the attention function."""
    return sdpa_mask(*args, **(kwargs | {"allow_is_causal_skip": False}))


def _modules_that_attend(model: PreTrainedModel) -> list[nn.Module]:
    """Run four tokens through the model and list the modules that call the interface, in order."""
    called: list[nn.Module] = []

    def probe(module, query, key, value, attention_mask, **kwargs):
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
