"""Distance-based pairing (Sparsefinder §4.3): an edge joins a query and a key that are near each other."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib.checks import Lengths, at_least, one_of
from sparselib.masks.visible import visible_pairs
from sparselib.predictors.inputs import checked_inputs
from sparselib.predictors.protocol import Needs

_POWER = {"sq_euclidean": 1, "euclidean": 2}  # threshold ** power limits the squared distance


@dataclass(frozen=True)
class Distance:
    """Pairs of queries and keys that are at most a threshold apart.

    The paper writes ||q' - k'|| <= t. The reference code compares *squared* distances, with a strict <. Here both
    metrics use <=, and the default is the reference code's.

    Parameters
    ----------
    threshold : float or Tensor ``[H]``, at least 0
    metric : ``"sq_euclidean"`` compares squared distances, ``"euclidean"`` plain ones

    Raises
    ------
    ValueError

    Examples
    --------
    >>> x = torch.tensor([0.0, 1.0, 3.0]).view(1, 1, 3, 1)
    >>> Distance(threshold=1.0).predict(x, x)[0, 0].int().tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """

    needs: ClassVar[Needs] = Needs()

    threshold: float | Tensor
    metric: str = "sq_euclidean"

    def __post_init__(self) -> None:
        thresholds = torch.as_tensor(self.threshold)
        if thresholds.ndim > 1 or not thresholds.numel():
            raise ValueError(f"threshold must be a number or [H], got {tuple(thresholds.shape)}")
        at_least("threshold", float(thresholds.min()), 0)
        one_of("metric", self.metric, _POWER)

    @property
    def squared_limit(self) -> float | Tensor:
        """The largest squared distance of an edge: a number, or ``[H]``."""
        return self.threshold ** _POWER[self.metric]

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the visible pairs within the threshold, of which there is one or one per head; see :meth:`Predictor.predict`.

        Raises
        ------
        ValueError
        """
        queries, keys = checked_inputs(q, k, lengths)
        limit = self.squared_limit
        if isinstance(limit, Tensor) and limit.ndim:
            if len(limit) != q.shape[1]:
                raise ValueError(f"threshold: one for each of {len(limit)} heads; q has {q.shape[1]}")
            limit = limit.to(queries.vectors)[:, None, None]
        near = squared_distances(queries.vectors, keys.vectors) <= limit
        return near & visible_pairs(q.shape[0], q.shape[2], k.shape[2], lengths, causal, q.device)


def squared_distances(q: Tensor, k: Tensor) -> Tensor:
    """Return ||q_i - k_j||² for all pairs, ``[B, H, Q, K]``, never negative.

    Parameters
    ----------
    q, k : Tensor ``[B, H, Q, R]``, ``[B, H, K, R]``

    Examples
    --------
    >>> squared_distances(torch.zeros(1, 1, 1, 1), torch.tensor([1.0, 3.0]).view(1, 1, 2, 1))
    tensor([[[[1., 9.]]]])
    """
    # |q|² - 2 q.k + |k|² as one product of longer vectors is six times faster than subtracting, at R = 4.
    # Cancellation leaves an error of about 1e-7 (|q|² + |k|²) in float32; the clamp keeps distances at 0 or more.
    q_norm, k_norm = (x.square().sum(-1, keepdim=True) for x in (q, k))
    left = torch.cat([-2 * q, q_norm, torch.ones_like(q_norm)], dim=-1)
    right = torch.cat([k, torch.ones_like(k_norm), k_norm], dim=-1)
    return (left @ right.mT).clamp_(min=0)
