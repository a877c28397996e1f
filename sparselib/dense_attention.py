"""Dense masked attention with any normaliser: the oracle that every other path is tested against."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.normalizers import Normalizer, alpha_of, entmax15

__all__ = ["PLAIN", "Scoring", "attention", "attention_weights", "gold_graph", "weights_of"]


@dataclass(frozen=True)
class Scoring:
    """How a model makes scores of queries and keys: ``softcap * tanh(q @ k.T * scale / softcap) + bias``.

    Attributes
    ----------
    scale : float, optional
        ``1 / sqrt(D)`` by default.
    softcap : float, optional
        No score is larger (Gemma 2).
    bias : Tensor broadcastable to ``[B, H, Q, K]``, optional
        As T5's of relative positions, or ALiBi's.
    sinks : Tensor ``[H]``, optional
        Scores of one more key, which takes weight from the others and has no value (gpt-oss).

    >>> q = k = torch.eye(2).view(1, 1, 2, 2)
    >>> Scoring(scale=10.0, softcap=5.0).scores(q, k)[0, 0]
    tensor([[4.8201, 0.0000],
            [0.0000, 4.8201]])
    """

    scale: float | None = None
    softcap: float | None = None
    bias: Tensor | None = None
    sinks: Tensor | None = None

    @property
    def is_scale_alone(self) -> bool:
        return self.softcap is None and self.bias is None and self.sinks is None

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """``[B, H, Q, D]``, ``[B, H, K, D]`` -> ``[B, H, Q, K]``, without that of a sink."""
        scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if self.scale is None else self.scale)
        if self.softcap is not None:
            scores = torch.tanh(scores / self.softcap) * self.softcap
        return scores if self.bias is None else scores + self.bias

    def weights(self, scores: Tensor, mask: Tensor | None, normalizer: Normalizer) -> Tensor:
        """:func:`weights_of` scores, less the weight that a sink takes."""
        if self.sinks is None:
            return weights_of(scores, mask, normalizer)
        sink = self.sinks[:, None, None].to(scores).expand(*scores.shape[:-1], 1)
        if mask is not None:
            mask = torch.cat([mask.expand(scores.shape), mask.new_ones(sink.shape)], dim=-1)
        return weights_of(torch.cat([scores, sink], dim=-1), mask, normalizer)[..., :-1]


#: The usual scores.
PLAIN = Scoring()


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | BlockMask | None = None,
    *,
    normalizer: Normalizer = entmax15,
    scale: float | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Scaled dot-product attention (Sparsefinder paper, Eq. 1), every score computed unless the mask is one of blocks.

    Parameters
    ----------
    q, k, v : Tensor ``[B, H, Q, D]``, ``[B, H, K, D]``, ``[B, H, K, E]``
    mask : Bool Tensor broadcastable to ``[B, H, Q, K]``, optional
        True where a query may attend. A query without any key is an *empty row*: its weights, its output and
        every gradient through it are 0. With a :class:`~sparselib.kernels.BlockMask` only its blocks are visited.
    normalizer : callable
        From scores ``[..., K]`` to probabilities of the same shape. A mask of blocks needs an alpha-entmax.
    scale : float, optional
        Factor on ``q @ k.T``; ``1 / sqrt(D)`` by default.

    Returns
    -------
    output ``[B, H, Q, E]``, weights ``[B, H, Q, K]``, or None with a mask of blocks

    Raises ``ValueError`` if shapes do not fit, the mask is not boolean, or the normaliser is not one for a mask of blocks.

    >>> q, k, v = torch.randn(3, 2, 4, 16, 8).unbind(0)
    >>> output, weights = attention(q, k, v)
    >>> output.shape, weights.shape
    (torch.Size([2, 4, 16, 8]), torch.Size([2, 4, 16, 16]))
    >>> restricted, _ = attention(q, k, v, weights > 0)  # a mask that holds the graph changes nothing
    >>> torch.allclose(restricted, output, atol=1e-6)
    True
    """
    if isinstance(mask, BlockMask):
        return block_sparse_entmax_attention(q, k, v, mask, alpha=alpha_of(normalizer), scale=scale), None
    _check_shapes(q, k, v, mask)
    weights = attention_weights(q, k, mask, normalizer=normalizer, scoring=Scoring(scale))
    return weights @ v, weights


def attention_weights(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None = None,
    *,
    normalizer: Normalizer = entmax15,
    scoring: Scoring = PLAIN,
) -> Tensor:
    """The weights ``[B, H, Q, K]`` of :func:`attention`, with scores of any kind; those that sinks take are left out.

    >>> q = k = 4 * torch.eye(3).view(1, 1, 3, 3)
    >>> attention_weights(q, k)[0, 0]
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """
    return scoring.weights(scoring.scores(q, k), mask, normalizer)


def weights_of(scores: Tensor, mask: Tensor | None, normalizer: Normalizer) -> Tensor:
    """Normalised scores ``[..., K]``, 0 where the mask is False and in rows without any key that may be attended to.

    >>> weights_of(torch.zeros(1, 3), torch.tensor([[True, True, False]]), entmax15)
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    # On a CPU, all and any of booleans take ten times as long as those of bytes.
    if mask is None or (octets := mask.view(torch.uint8)).all():
        return normalizer(scores)
    scores = scores.where(mask, -torch.inf)
    empty = octets.any(-1, keepdim=True) == 0
    if not empty.any():
        return normalizer(scores)
    return normalizer(scores.masked_fill(empty, 0.0)).masked_fill(empty, 0.0)


def gold_graph(q: Tensor, k: Tensor, mask: Tensor | None = None, *, scoring: Scoring = PLAIN) -> Tensor:
    """The attention graph of 1.5-entmax (section 4.1): True at ``[B, H, Q, K]`` where the weight is not zero.

    Parameters
    ----------
    q, k : Tensor ``[B, H, Q, D]``, ``[B, H, K, D]``
        Queries and keys before scaling; computed in float32 or better.
    mask : Bool Tensor, optional
        As in :func:`attention`; never True in the result where it is False.

    >>> q = k = 4 * torch.eye(3).view(1, 1, 3, 3)
    >>> gold_graph(q, k)[0, 0].int()
    tensor([[1, 0, 0],
            [0, 1, 0],
            [0, 0, 1]], dtype=torch.int32)
    """
    if q.dtype in (torch.float16, torch.bfloat16):
        q, k = q.float(), k.float()
    with torch.no_grad():
        return attention_weights(q, k, mask, scoring=scoring).bool()


def _check_shapes(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    if q.shape[:2] != k.shape[:2] or q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q and k do not fit: {tuple(q.shape)} and {tuple(k.shape)}")
    if v.shape[:3] != k.shape[:3]:
        raise ValueError(f"k and v do not fit: {tuple(k.shape)} and {tuple(v.shape)}")
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(f"mask: boolean expected, True = may attend; got {mask.dtype}")
