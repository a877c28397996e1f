"""Upper bounds on the scores of a key block, from a summary of the block, and bounds on rounding errors.

All bounds are computed in float64, whatever the dtype of q and k, with a proven slack for rounding. No setting (TF32, reduced
bfloat16 sums) affects float64 products. They are cheap, because there is only one per query and key *block*.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import pad

EPSILON = torch.finfo(torch.float64).eps
#: Largest score error that a certificate accepts. Less accurate scores do not determine the weights.
SCORE_RESOLUTION = 2.0**-6


@dataclass(frozen=True)
class KeyBlocks:
    """Summaries of the N key blocks of each batch entry and each of the G key heads, without padded keys.

    Attributes
    ----------
    centre : float64 Tensor ``[B * G, N, D]``
        Mean of the block's keys.
    radius : float64 Tensor ``[B * G, N]``
        Largest distance of a key from the centre.
    box : float64 Tensor ``[B * G, N, 2 * D]``
        Largest entry of the block's keys in each dimension, then the smallest.
    reach : float64 Tensor ``[B * G, N]``
        Upper bound on the norm of the block's keys and of any vector in the box.
    """

    centre: Tensor
    radius: Tensor
    box: Tensor
    reach: Tensor

    @classmethod
    def of(cls, k: Tensor, size: int, lengths: Tensor | None) -> Self:
        """Return the summaries of all key blocks.

        Parameters
        ----------
        k : Tensor ``[B, G, K, D]``
            Keys.
        size : int
            Keys per block.
        lengths : int Tensor ``[B]``, optional
            Keys of each sequence that are not padding; all by default.

        Returns
        -------
        KeyBlocks
            Blocks that contain only padding have zeros.
        """
        batch, _, n, _ = k.shape
        keys = pad(k.double(), (0, 0, 0, -n % size)).unflatten(2, (-1, size))  # [B, G, N, size, D]
        limit = torch.full((batch,), n, device=k.device) if lengths is None else lengths
        position = torch.arange(keys.shape[2] * size, device=k.device)
        padded = (position >= limit[:, None]).view(batch, 1, -1, size, 1)
        none = padded.all(-2)  # no query attends to blocks of padding, but their summary must be finite

        centre = keys.masked_fill(padded, 0.0).sum(-2) / (~padded).sum(-2).clamp_min(1)
        radius = (keys - centre[..., None, :]).masked_fill_(padded, 0.0).norm(dim=-1).amax(-1)
        largest = keys.masked_fill(padded, -torch.inf).amax(-2).masked_fill_(none, 0.0)
        smallest = keys.masked_fill(padded, torch.inf).amin(-2).masked_fill_(none, 0.0)
        corner = torch.maximum(largest.abs(), smallest.abs()).norm(dim=-1)
        reach = torch.maximum(centre.norm(dim=-1) + radius, corner)
        box = torch.cat([largest, smallest], -1)
        return cls(*(x.flatten(0, 1) for x in (centre, radius, box, reach)))

    def largest_scores(self, q: Tensor, head: Tensor) -> Tensor:
        """Return an upper bound on the scores of each query in each key block.

        Parameters
        ----------
        q : float64 Tensor ``[R, M, D]``
            R groups of M queries, multiplied by the factor of the scores, which may be negative.
        head : int64 Tensor ``[R]``
            Key head of each group, counted over the batch: an index into the summaries.

        Returns
        -------
        float64 Tensor ``[R, M, N]``
            The smaller of the ball's and the box's bound, plus a slack for rounding. Infinite if a score overflows float64.
        """
        length = q.norm(dim=-1, keepdim=True)
        ball = q @ self.centre[head].mT + length * self.radius[head, None]
        box = torch.cat([q.clamp_min(0), q.clamp_max(0)], -1) @ self.box[head].mT
        # At most 2 D + 8 roundings (of unit EPSILON / 2) compound in a product of 2 D terms, a norm of D terms or their sum.
        # None of these terms exceeds length * reach (Cauchy-Schwarz). The slack is twice the resulting error.
        slack = (2 * q.shape[-1] + 16) * EPSILON * length * self.reach[head, None]
        return (
            torch.minimum(ball, box).add_(slack).nan_to_num_(nan=torch.inf)
        )  # NaN means that a score overflows float64


def score_error(length: Tensor, reach: Tensor, dimension: int, dtype: torch.dtype) -> Tensor:
    """Return an upper bound on the rounding error of a score.

    Parameters
    ----------
    length : float64 Tensor ``[R, M]``
        Query norms, multiplied by the factor of the scores.
    reach : Tensor ``[R]``
        Largest norm of the keys that a query group visits.
    dimension : int
        Head dimension.
    dtype : torch.dtype
        Dtype in which the scores were computed, by IEEE arithmetic (not TF32).

    Returns
    -------
    float64 Tensor ``[R, M]``
        Largest difference from exact arithmetic.

    Notes
    -----
    Besides the roundings of the dot product, two roundings cover the factor and the difference from the threshold. Two more are
    a margin.

    References
    ----------
    Higham (2002), Accuracy and Stability of Numerical Algorithms, section 3.1.
    """
    return torch.finfo(dtype).eps * (dimension + 8) / 2 * length * reach[:, None]


def threshold_error(length: Tensor, reach: Tensor, keys: Tensor, dimension: int, dtype: torch.dtype) -> Tensor:
    """Return an upper bound on how far a threshold lies above the threshold of exact arithmetic on the same keys.

    Parameters
    ----------
    length : float64 Tensor ``[R, M]``
        Query norms, multiplied by the factor of the scores.
    reach : Tensor ``[R]``
        Largest norm of the keys that a query group visits.
    keys : Tensor ``[R]``
        Number of these keys.
    dimension : int
        Head dimension.
    dtype : torch.dtype
        Dtype in which scores and threshold were computed, by IEEE arithmetic (not TF32).

    Returns
    -------
    float64 Tensor ``[R, M]``
        The bound.

    Notes
    -----
    The error has two parts. First, the threshold is monotone in the scores and moves along with their shift. It therefore moves
    by no more than the largest score error, :func:`score_error`, which includes the rounding of the threshold itself. The bound
    takes 8 times as much, for truncating accumulators and partial sums.

    Second, for given scores, the threshold is the point where a sum over `keys` terms is 1. This sum has an error of at most
    ``(keys / 2 + 8) * eps``. Its slope is at least 1, because every term is at most 1 and the root of it that is differentiated
    is no smaller. So the threshold has at most the same error. The bound takes twice that, and 64 more terms for the last steps
    of a solver.
    """
    scores = 8 * score_error(length, reach, dimension, dtype)
    return scores + torch.finfo(dtype).eps * 2 * (keys[:, None] + 64)
