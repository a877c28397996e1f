"""How good a predicted graph is, per sentence and head.

All counts run over the visible pairs V: both tokens real and, if causal, the key not after the query.
A ratio over an empty set is 1: nothing was missed, and nothing that was predicted is wrong.
"""

import torch
from torch import Tensor

from sparselib.checks import Lengths
from sparselib.masks.visible import real_positions, visible_pairs

__all__ = ["edge_counts", "empty_rows", "exact_fraction", "precision", "recall", "sparsity"]


def recall(predicted: Tensor, gold: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
    """``|predicted ∩ gold| / |gold|`` (Eq. 4): ``Bool[B, H, Q, K]`` twice -> float64 ``[B, H]``.

    Raises ``ValueError``, as all measures here do, for masks that are not boolean, 4-D and of one shape, and for
    lengths outside 0 to N.

    >>> gold = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 1, 1]], dtype=torch.bool).view(1, 1, 3, 3)
    >>> recall(torch.eye(3, dtype=torch.bool).view(1, 1, 3, 3), gold)
    tensor([[0.6000]], dtype=torch.float64)
    """
    _check_same_shape(predicted, gold)
    gold = _visible_of(gold, lengths, causal)
    return _ratio(edge_counts(predicted & gold), edge_counts(gold))


def precision(predicted: Tensor, gold: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
    """``|predicted ∩ gold| / |predicted|``: ``Bool[B, H, Q, K]`` twice -> ``[B, H]``.

    >>> gold = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 1, 1]], dtype=torch.bool).view(1, 1, 3, 3)
    >>> precision(torch.ones_like(gold), gold, causal=True)
    tensor([[0.8333]], dtype=torch.float64)
    """
    return recall(gold, predicted, lengths=lengths, causal=causal)


def sparsity(predicted: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
    """``1 - |predicted| / |V|`` (Eq. 5), where V has n² pairs or, if causal, n(n+1)/2: ``Bool[B, H, Q, K]`` -> ``[B, H]``.

    >>> sparsity(torch.eye(4, dtype=torch.bool).view(1, 1, 4, 4))
    tensor([[0.7500]], dtype=torch.float64)
    """
    found = edge_counts(_visible_of(predicted, lengths, causal))
    if lengths is None and not causal:
        return 1 - _ratio(found, torch.full_like(found, predicted.shape[2] * predicted.shape[3]))
    visible = visible_pairs(len(predicted), *predicted.shape[2:], lengths, causal, predicted.device)
    return 1 - _ratio(found, edge_counts(visible))


def exact_fraction(predicted: Tensor, gold: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
    """Share of real queries whose gold keys are all predicted: ``Bool[B, H, Q, K]`` twice -> ``[B, H]``.

    >>> gold = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 1, 1]], dtype=torch.bool).view(1, 1, 3, 3)
    >>> exact_fraction(torch.eye(3, dtype=torch.bool).view(1, 1, 3, 3), gold)
    tensor([[0.3333]], dtype=torch.float64)
    """
    _check_same_shape(predicted, gold)
    missed = _visible_of(gold, lengths, causal) & ~predicted
    real = _real_queries(gold, lengths)
    return _ratio((real & ~missed.any(dim=-1)).sum(dim=-1), real.sum(dim=-1))


def empty_rows(predicted: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
    """Number of real queries without a visible predicted key: ``Bool[B, H, Q, K]`` -> int64 ``[B, H]``.

    >>> empty_rows(torch.zeros(1, 2, 5, 5, dtype=torch.bool), lengths=torch.tensor([3]))
    tensor([[3, 3]])
    """
    attends = _visible_of(predicted, lengths, causal).view(torch.uint8)
    return (_real_queries(predicted, lengths) & (attends.any(dim=-1) == 0)).sum(dim=-1)


def _visible_of(mask: Tensor, lengths: Lengths, causal: bool) -> Tensor:
    """What of a mask is visible; where nothing is hidden, no pair is looked at."""
    if mask.dtype != torch.bool or mask.ndim != 4:
        raise ValueError(f"masks must be Bool[B, H, Q, K], got {mask.dtype} {tuple(mask.shape)}")
    if lengths is None and not causal:
        return mask
    return mask & visible_pairs(len(mask), *mask.shape[2:], lengths, causal, mask.device)


def _real_queries(mask: Tensor, lengths: Lengths) -> Tensor:
    return real_positions(mask.shape[0], mask.shape[2], lengths, mask.device)[:, None].expand(mask.shape[:3])


def _check_same_shape(predicted: Tensor, gold: Tensor) -> None:
    if predicted.shape != gold.shape:
        raise ValueError(f"predicted {tuple(predicted.shape)} and gold {tuple(gold.shape)} differ in shape")


def edge_counts(mask: Tensor) -> Tensor:
    """Int64 ``[B, H]``; a sum would first write eight bytes for each pair, which on a CPU takes 15 times as long.

    >>> edge_counts(torch.eye(4, dtype=torch.bool).view(1, 1, 4, 4))
    tensor([[4]])
    """
    if mask.device.type != "cpu" or not mask.numel():
        return mask.sum(dim=(-2, -1))
    return torch.stack([head.count_nonzero() for head in mask.flatten(0, 1)]).view(mask.shape[:2])


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    return torch.where(whole > 0, part.double() / whole, 1.0)
