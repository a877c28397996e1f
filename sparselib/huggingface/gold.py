"""Which keys a head needs, as a rule with a name: ``entmax:1.5``, ``mass:0.95`` or ``top:8``."""

from collections.abc import Callable

import torch
from torch import Tensor

from sparselib.control import LayerCall
from sparselib.dense_attention import attention_weights
from sparselib.normalizers import Entmax, Normalizer

#: From a layer's call to ``Bool[B, H, Q, K]``, never True where nothing is visible.
GoldRule = Callable[[LayerCall], Tensor]


def gold_rule(name: str) -> GoldRule:
    """The rule of a name, each under the model's own scores.

    - ``entmax:A``: the keys with a weight of A-entmax that is not 0, A in (1, 2].
    - ``mass:P``: the fewest keys whose weights of softmax add up to P, in (0, 1].
    - ``top:K``: the K largest scores.

    Raises ``ValueError`` for another name, or a number outside its range.
    """
    kind, _, text = name.partition(":")
    if kind not in _RULES:
        raise ValueError(f"gold must be {', '.join(f'{one}:NUMBER' for one in _RULES)}; got {name!r}")
    low, high, rule = _RULES[kind]
    try:
        number = int(text) if kind == "top" else float(text)
    except ValueError:
        raise ValueError(f"gold: {name!r} has no number after the colon") from None
    if not low < number <= high:
        raise ValueError(f"gold: the number of {kind} is above {low} and at most {high}; got {name!r}")
    return rule(number)


def _entmax(alpha: float) -> GoldRule:
    return lambda call: _weights(call, Entmax(alpha)) > 0


def _mass(share: float) -> GoldRule:
    def needed(call: LayerCall) -> Tensor:
        weights, order = _weights(call, Entmax(1)).sort(dim=-1, descending=True)
        before = weights.cumsum(-1) - weights
        return torch.zeros_like(weights, dtype=torch.bool).scatter_(-1, order, (before < share) & (weights > 0))

    return needed


def _top(count: int) -> GoldRule:
    def needed(call: LayerCall) -> Tensor:
        weights = _weights(call, Entmax(1))
        chosen = weights.topk(min(count, weights.shape[-1]), dim=-1).indices
        return torch.zeros_like(weights, dtype=torch.bool).scatter_(-1, chosen, True) & call.visible

    return needed


def _weights(call: LayerCall, normalizer: Normalizer) -> Tensor:
    with torch.no_grad():
        return attention_weights(
            call.q.float(), call.k.float(), call.visible, normalizer=normalizer, scoring=call.scoring
        )


#: What a number is above, what it is at most, and the rule.
_RULES = {"entmax": (1, 2, _entmax), "mass": (0, 1, _mass), "top": (0, 1 << 20, _top)}
