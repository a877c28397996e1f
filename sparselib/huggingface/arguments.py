"""The arguments that transformers passes to an attention, as visible pairs and a scoring."""

import torch
from torch import Tensor, nn
from transformers.utils.generic import TransformersKwargs

from sparselib.dense_attention import Scoring

#: Arguments of the interface that do not change scores: they concern outputs, caches and losses, or the mask shows them too.
_WITHOUT_EFFECT = {
    *(TransformersKwargs.__annotations__.keys() - {"cu_seq_lens_q", "cu_seq_lens_k", "seq_idx", "is_causal"}),
    "cache_position",
    "deterministic",
    "return_dict",
    "sliding_window",
    "use_cache",
}


def mask_and_scoring(
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
    # Whether there is a bias is unknown while the model is traced.
    return ~hidden, added if torch.compiler.is_compiling() or added.any() else None
