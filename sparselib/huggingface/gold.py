"""Gold rules, the keys that a head needs, by name: ``entmax:1.5``, ``mass:0.95`` or ``top:8``."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from sparselib.control import LayerCall
from sparselib.dense_attention import attention_weights
from sparselib.normalizers import Entmax, Normalizer

#: From a layer's call to ``Bool[B, H, Q, K]``, which is never True at invisible pairs.
GoldRule = Callable[[LayerCall], Tensor]


def gold_rule(name: str) -> GoldRule:
    """Return the gold rule of a name, applied to the model's own scores.

    Parameters
    ----------
    name : str
        - ``entmax:A``: the keys with nonzero weight under A-entmax, A in (1, 2].
        - ``mass:P``: the fewest keys whose softmax weights add up to P, P in (0, 1].
        - ``top:K``: the K largest scores.

    Raises
    ------
    ValueError
        If the rule is unknown, or its number is missing or out of range.
    """
    kind, _, suffix = name.partition(":")
    if kind not in _RULES:
        raise ValueError(f"`gold` must be one of {', '.join(f'{rule}:NUMBER' for rule in _RULES)}; got {name!r}")
    low, high, rule = _RULES[kind]
    try:
        number = int(suffix) if kind == "top" else float(suffix)
    except ValueError:
        raise ValueError(f"`gold` must have a number after the colon, got {name!r}") from None
    if not low < number <= high:
        raise ValueError(f"`gold` must have a number above {low} and at most {high} for {kind}, got {name!r}")
    return rule(number)


def _entmax(alpha: float) -> GoldRule:
    return lambda call: _weights(call, Entmax(alpha)) > 0


def _mass(share: float) -> GoldRule:
    def gold(call: LayerCall) -> Tensor:
        weights = _weights(call, Entmax(1))
        falling = _sorted(weights).flip(-1)
        before = falling.cumsum(-1) - falling
        count = ((before < share) & (falling > 0)).sum(-1, keepdim=True)
        least = falling.gather(-1, (count - 1).clamp_min(0))
        needed = (weights >= least) & (count > 0)
        if (needed.sum(-1, keepdim=True) > count).any():  # of equal weights, the first keys are needed
            equal = weights == least
            needed &= ~equal | (equal.cumsum(-1) <= count - (needed & ~equal).sum(-1, keepdim=True))
        return needed

    return gold


def _top(count: int) -> GoldRule:
    def gold(call: LayerCall) -> Tensor:
        weights = _weights(call, Entmax(1))
        largest = weights.topk(min(count, weights.shape[-1]), dim=-1).indices
        return torch.zeros_like(weights, dtype=torch.bool).scatter_(-1, largest, True) & call.visible

    return gold


def _sorted(weights: Tensor) -> Tensor:
    """Sort each row. NumPy is four times as fast as torch on processors with AVX-512, because it returns no order."""
    if weights.device.type == "cpu":
        return torch.from_numpy(np.sort(weights.numpy(), axis=-1))
    return weights.sort(dim=-1).values


def _weights(call: LayerCall, normalizer: Normalizer) -> Tensor:
    """Return a call's weights in single precision, without gradients."""
    with torch.no_grad():
        return attention_weights(
            call.q.float(), call.k.float(), call.visible, normalizer=normalizer, scoring=call.scoring
        )


#: Exclusive lower limit and inclusive upper limit of the number, and the rule.
_RULES = {"entmax": (1, 2, _entmax), "mass": (0, 1, _mass), "top": (0, 1 << 20, _top)}
