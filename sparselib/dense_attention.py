"""Dense masked attention with any normaliser: the oracle that every other path is tested against."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from sparselib.exact_output import exact_output
from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.kernels.tracing import is_traced, is_transformed
from sparselib.masks.pattern import looked_up
from sparselib.normalizers import Normalizer, alpha_of, entmax15

__all__ = ["PLAIN", "Scoring", "attention", "attention_output", "attention_weights", "gold_graph", "weights_of"]


@dataclass(frozen=True)
class Scoring:
    """How a model scores queries and keys: ``softcap * tanh(q @ k.T * scale / softcap) + bias``.

    Parameters
    ----------
    scale : float, optional, by default ``1 / sqrt(D)``
    softcap : float, optional, the limit on the size of a score (Gemma 2)
    bias : Tensor broadcastable to ``[B, H, Q, K]``, optional, such as T5's relative positions or ALiBi
    sinks : Tensor ``[H]``, optional, the scores of one more key, which takes weight and has no value (gpt-oss)

    Examples
    --------
    >>> Scoring(scale=10.0, softcap=5.0).scores(torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1))
    tensor([[[[4.8201]]]])
    """

    scale: float | None = None
    softcap: float | None = None
    bias: Tensor | None = None
    sinks: Tensor | None = None

    @property
    def score_mod(self) -> Callable[..., Tensor] | None:
        """The soft cap and the bias as FlexAttention's ``(score, b, h, q_idx, kv_idx) -> score``, or None without both."""
        if self.softcap is None and self.bias is None:
            return None
        bias = None if self.bias is None else looked_up(self.bias)

        def changed(score: Tensor, *place: Tensor) -> Tensor:
            if self.softcap is not None:
                score = torch.tanh(score / self.softcap) * self.softcap
            return score if bias is None else score + bias(*place)

        return changed

    @property
    def is_product(self) -> bool:
        """Whether scores are scaled products, without soft cap, bias or sinks."""
        return self.softcap is None and self.bias is None and self.sinks is None

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Return the scores ``[B, H, Q, K]`` of ``q [B, H, Q, D]`` and ``k [B, H, K, D]``, without the sink's."""
        scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if self.scale is None else self.scale)
        if self.softcap is not None:
            scores = torch.tanh(scores / self.softcap) * self.softcap
        return scores if self.bias is None else scores + self.bias

    def weights(self, scores: Tensor, mask: Tensor | None, normalizer: Normalizer) -> Tensor:
        """Return :func:`weights_of` the scores, without the weight that a sink takes."""
        if self.sinks is None:
            return weights_of(scores, mask, normalizer)
        sink = self.sinks[:, None, None].to(scores).expand(*scores.shape[:-1], 1)
        if mask is not None:
            mask = torch.cat([mask.expand(scores.shape), mask.new_ones(sink.shape)], dim=-1)
        return weights_of(torch.cat([scores, sink], dim=-1), mask, normalizer)[..., :-1]

    def edges(self, scores: Tensor, mask: Tensor | None, normalizer: Normalizer) -> Tensor:
        """Return where :meth:`weights` are not zero: under softmax everywhere, even where a weight rounds to zero."""
        alpha = getattr(normalizer, "alpha", None)
        if isinstance(alpha, int | float) and alpha == 1:
            finite = scores > -torch.inf
            return finite if mask is None else finite & mask
        return self.weights(scores, mask, normalizer).bool()


#: Scaled dot products, without soft cap, bias or sinks.
PLAIN = Scoring()


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | BlockMask | None = None,
    *,
    normalizer: Normalizer = entmax15,
    scale: float | None = None,
    weights: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Return the output ``[B, H, Q, E]`` and weights ``[B, H, Q, K]`` of scaled dot-product attention (Sparsefinder, Eq. 1).

    Parameters
    ----------
    q, k, v : Tensor ``[B, H, Q, D]``, ``[B, H, K, D]``, ``[B, H, K, E]``
    mask : Bool Tensor broadcastable to ``[B, H, Q, K]``, or BlockMask, optional
        True where a query may attend. A query without any key is an *empty row*: its weights, its output and every gradient
        through it are 0. Keys that no query may attend to, such as padding, change nothing, even if they are NaN. With a
        :class:`~sparselib.kernels.BlockMask`, only its blocks are computed, and the weights are None.
    normalizer : callable, from scores ``[..., K]`` to probabilities; an alpha-entmax if the mask is a block mask
    scale : float, optional, the factor on ``q @ k.T``, by default ``1 / sqrt(D)``
    weights : bool
        False returns None in place of the weights. Entmax and masked softmax then run in the compiled kernel of a CPU, if
        they can, and other softmax in PyTorch's, which has no second derivatives. Both take less time and linear memory.

    Examples
    --------
    >>> q, k, v = torch.randn(3, 2, 4, 16, 8).unbind(0)
    >>> output, weights = attention(q, k, v)
    >>> restricted, _ = attention(q, k, v, weights > 0)  # a mask that contains the gold graph changes nothing
    >>> torch.allclose(restricted, output, atol=1e-6)
    True
    """
    if isinstance(mask, BlockMask):
        return block_sparse_entmax_attention(q, k, v, mask, alpha=alpha_of(normalizer), scale=scale), None
    _check_shapes(q, k, v, mask)
    if mask is not None:
        q, k, v = _without_hidden(q, k, v, mask)
    if not weights:
        return attention_output(q, k, v, mask, normalizer=normalizer, scoring=Scoring(scale)), None
    p = attention_weights(q, k, mask, normalizer=normalizer, scoring=Scoring(scale))
    return p @ v, p


def attention_output(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    normalizer: Normalizer = entmax15,
    scoring: Scoring = PLAIN,
) -> Tensor:
    """Return the output ``[B, H, Q, E]`` of :func:`attention` under any scoring, by the fastest exact method.

    Parameters
    ----------
    q, k, v, mask, normalizer : as in :func:`attention`, without block masks
    scoring : Scoring

    Examples
    --------
    >>> q = k = 4 * torch.eye(3).view(1, 1, 3, 3)
    >>> attention_output(q, k, k)[0, 0, 0]
    tensor([4., 0., 0.])
    """
    output = exact_output(q, k, v, mask, normalizer, scoring.scale) if scoring.is_product else None
    if output is not None:
        return output
    return attention_weights(q, k, mask, normalizer=normalizer, scoring=scoring).to(v.dtype) @ v


def attention_weights(
    q: Tensor, k: Tensor, mask: Tensor | None = None, *, normalizer: Normalizer = entmax15, scoring: Scoring = PLAIN
) -> Tensor:
    """Return the weights ``[B, H, Q, K]`` of :func:`attention` under any scoring, without those of sinks.

    Parameters
    ----------
    q, k, mask, normalizer : as in :func:`attention`, without block masks
    scoring : Scoring

    Examples
    --------
    >>> q = k = 4 * torch.eye(3).view(1, 1, 3, 3)
    >>> attention_weights(q, k)[0, 0, 0]
    tensor([1., 0., 0.])
    """
    return scoring.weights(scoring.scores(q, k), mask, normalizer)


def weights_of(scores: Tensor, mask: Tensor | None, normalizer: Normalizer) -> Tensor:
    """Normalise masked scores; weights are 0 where the mask is False and in rows without any allowed key.

    Parameters
    ----------
    scores, mask : Tensor ``[..., K]`` and Bool Tensor broadcastable to it, or None
    normalizer : callable

    Examples
    --------
    >>> weights_of(torch.zeros(1, 3), torch.tensor([[True, True, False]]), entmax15)
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    if mask is not None and (is_traced(mask) or is_transformed(mask)):  # no branches on the data
        empty = ~mask.any(-1, keepdim=True)
        return normalizer(scores.where(mask, -torch.inf).masked_fill(empty, 0.0)).masked_fill(empty, 0.0)
    # On a CPU, all() and any() are ten times faster on bytes than on booleans.
    if mask is None or (mask_bytes := mask.view(torch.uint8)).all():
        return normalizer(scores)
    scores = scores.where(mask, -torch.inf)
    empty = mask_bytes.any(-1, keepdim=True) == 0
    if not empty.any():
        return normalizer(scores)
    return normalizer(scores.masked_fill(empty, 0.0)).masked_fill(empty, 0.0)


def gold_graph(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None = None,
    *,
    normalizer: Normalizer = entmax15,
    scoring: Scoring = PLAIN,
) -> Tensor:
    """Return the attention graph of a normaliser (section 4.1): True at ``[B, H, Q, K]`` where the weight is not zero.

    Parameters
    ----------
    q, k : Tensor ``[B, H, Q, D]``, ``[B, H, K, D]``, before scaling, computed in float32 or better
    mask : Bool Tensor, optional, as in :func:`attention`
    normalizer : callable, the model's own; the paper's is 1.5-entmax
    scoring : Scoring

    Examples
    --------
    >>> q = k = 4 * torch.eye(3).view(1, 1, 3, 3)
    >>> gold_graph(q, k)[0, 0].int().tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    if q.dtype in (torch.float16, torch.bfloat16):
        q, k = q.float(), k.float()
    with torch.no_grad():
        return scoring.edges(scoring.scores(q, k), mask, normalizer)


def _without_hidden(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Set queries without keys, and keys and values without queries, to 0, because 0 times a hidden NaN is NaN."""
    pairs = torch.atleast_2d(mask).view(torch.uint8)  # On a CPU, any() is ten times faster on bytes than on booleans.
    unseen, blind = pairs.any(-2).unsqueeze(-1) == 0, pairs.any(-1, keepdim=True) == 0
    return q.masked_fill(blind, 0.0), k.masked_fill(unseen, 0.0), v.masked_fill(unseen, 0.0)


def _check_shapes(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    if q.shape[:2] != k.shape[:2] or q.shape[-1] != k.shape[-1]:
        raise ValueError(f"`q` and `k` must share B, H and D, got {tuple(q.shape)} and {tuple(k.shape)}")
    if v.shape[:3] != k.shape[:3]:
        raise ValueError(f"`k` and `v` must share B, H and K, got {tuple(k.shape)} and {tuple(v.shape)}")
    if not q.is_floating_point():
        raise ValueError(f"`q` must be floating point, got {q.dtype}; convert it with q.float()")
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(f"`mask` must be boolean with True where a query may attend, got {mask.dtype}")
