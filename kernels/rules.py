"""Token-level rules inside visited blocks, in FlexAttention's form, and the gradients through them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

#: Function ``(b, h, q_idx, kv_idx) -> Bool``, True where a query may attend to a key.
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
#: Function ``(score, b, h, q_idx, kv_idx) -> score``.
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
#: Batch entries, heads, queries and keys: int64 tensors that broadcast to the shape of the scores.
Places = tuple[Tensor, Tensor, Tensor, Tensor]
OTHER_TENSORS = "`score_mod` must read the same tensors in every call; compute those with a gradient outside it"


@dataclass(frozen=True, eq=False)
class Rules:
    """The rules of one attention call, and the tensors with a gradient that `score_mod` reads."""

    mask_mods: tuple[MaskMod, ...]
    score_mod: ScoreMod | None
    read: tuple[Tensor, ...]

    def hidden(self, places: Places) -> Tensor | None:
        """Return which pairs the masks hide, in a shape that broadcasts to the scores."""
        allowed = [torch.as_tensor(mask_mod(*places)) for mask_mod in self.mask_mods]
        if any(x.dtype != torch.bool for x in allowed):  # ~ would change the bits of integers.
            raise ValueError(f"`mask_mod` must return booleans, got {', '.join(str(x.dtype) for x in allowed)}")
        return ~reduce(and_, allowed) if allowed else None

    def written_out(self, q: Tensor, k: Tensor, most: int | None = None) -> Tensor | None:
        """Return the masks as one ``Bool [B or 1, H or 1, Q or 1, K or 1]``, or None if it has more than `most` entries."""
        places = [
            torch.arange(size, device=q.device).view([-1 if axis == own else 1 for axis in range(4)])
            for own, size in enumerate((*q.shape[:3], k.shape[2]))
        ]
        if 0 in (*q.shape[:3], k.shape[2]):
            return None
        heads = self.hidden((*places[:2], places[2][:, :, :1], places[3][..., :1])).numel()
        if most is not None and heads * q.shape[2] * k.shape[2] > most:
            return None
        hidden = self.hidden(tuple(places))
        return ~hidden[(None,) * (4 - hidden.ndim)]

    def modified(self, scores: Tensor, places: Places) -> Tensor:
        """Return the scores after `score_mod`, in the shape and dtype of ``scores [G, q_block, keys]``."""
        return self.score_mod(scores, *places).to(scores.dtype).expand_as(scores)


class ScoreGradients:
    """Gradients through `score_mod`, chunk by chunk; `totals` sums those of the tensors that it reads.

    The values of these tensors come from autograd, which raises an error if they were changed in place.
    """

    def __init__(self, rules: Rules, values: list[Tensor]):
        self._rules, self._leaves = rules, [x.detach().requires_grad_() for x in values]
        self.totals = [torch.zeros_like(x) for x in values]

    def record(self, scores: Tensor, places: Places) -> Tensor:
        """Return the modified scores without their graph, which is kept for :meth:`propagate`."""
        self._scores = scores.requires_grad_()
        known = dict(zip(map(id, self._rules.read), self._leaves, strict=True)) | {id(scores): scores}
        with torch.enable_grad(), _Reads(dict(known)) as reads:
            # A copy, because score_mod may change its argument in place.
            self._modified = self._rules.modified(self._scores.clone(), places)
        if reads.tensors.keys() != known.keys():
            raise ValueError(OTHER_TENSORS)
        return self._modified.detach()

    def propagate(self, gradient: Tensor) -> Tensor:
        """Return the gradient of the recorded scores from the gradient of the modified scores."""
        if not self._modified.requires_grad:  # The rule replaces scores by constants.
            return torch.zeros_like(gradient)
        inputs = [self._scores, *self._leaves]
        own, *others = torch.autograd.grad(self._modified, inputs, gradient, materialize_grads=True)
        for total, other in zip(self.totals, others, strict=True):
            total += other
        return own


def tensors_read(score_mod: ScoreMod | None, like: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors with a gradient that a `score_mod` reads, such as learned biases, by calling it for one pair."""
    if score_mod is None or not torch.is_grad_enabled() or like.numel() == 0:
        return ()
    found = []
    for _ in range(2):
        score, place = like.new_zeros(1, 1, 1), torch.zeros(1, 1, 1, dtype=torch.int64, device=like.device)
        with torch.enable_grad(), _Reads({}) as reads:
            score_mod(score, place, place, place, place)
        found.append(reads.tensors)
    if found[0].keys() != found[1].keys():
        raise ValueError(OTHER_TENSORS)
    return tuple(found[0].values())


class _Reads(TorchFunctionMode):
    """Collects tensors with a gradient that PyTorch functions read but did not compute, and passes replacements instead."""

    def __init__(self, replaced: dict[int, Tensor]):
        super().__init__()
        self.tensors = replaced
        self._computed: dict[int, Tensor] = {}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        args, kwargs = tree_map_only(Tensor, self._read, (args, kwargs or {}))
        result = function(*args, **kwargs)
        tree_map_only(Tensor, lambda x: self._computed.setdefault(id(x), x), result)
        return result

    def _read(self, x: Tensor) -> Tensor:
        return self.tensors.setdefault(id(x), x) if x.requires_grad and id(x) not in self._computed else x
