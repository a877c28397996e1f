"""How large the scores of a block of keys can be, from a summary of the block alone, and how far a threshold can be off.

Everything here is float64, whatever the dtype of q and k, and so exact but for a slack that is proven below: no setting (TF32,
reduced bfloat16 sums) touches float64 products, and they are few, one per query and *block* of keys.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import pad

EPSILON = torch.finfo(torch.float64).eps
#: Scores that may be off by more than this do not decide weights: a certificate needs better ones.
SCORE_RESOLUTION = 2.0**-6


@dataclass(frozen=True)
class KeyBlocks:
    """Summaries of the N blocks of keys of each of the G heads of each batch entry; padded keys are not in them.

    Attributes
    ----------
    centre : float64 Tensor ``[B * G, N, D]``
    radius : float64 Tensor ``[B * G, N]``
        No key of the block is farther from the centre.
    box : float64 Tensor ``[B * G, N, 2 * D]``
        The largest entries of the block's keys in each dimension, then the smallest.
    reach : float64 Tensor ``[B * G, N]``
        No key of the block is longer, nor is the longest vector of the box.
    """

    centre: Tensor
    radius: Tensor
    box: Tensor
    reach: Tensor

    @classmethod
    def of(cls, k: Tensor, size: int, lengths: Tensor | None) -> Self:
        """The summaries of ``k [B, G, K, D]`` in blocks of `size` keys, of which ``lengths [B]`` are real."""
        batch, _, n, _ = k.shape
        keys = pad(k.double(), (0, 0, 0, -n % size)).unflatten(2, (-1, size))  # [B, G, N, size, D]
        limit = torch.full((batch,), n, device=k.device) if lengths is None else lengths
        position = torch.arange(keys.shape[2] * size, device=k.device)
        padded = (position >= limit[:, None]).view(batch, 1, -1, size, 1)
        none = padded.all(-2)  # blocks of padding alone: nobody may attend to them, but their summary should be finite

        centre = keys.masked_fill(padded, 0.0).sum(-2) / (~padded).sum(-2).clamp_min(1)
        radius = (keys - centre[..., None, :]).masked_fill_(padded, 0.0).norm(dim=-1).amax(-1)
        largest = keys.masked_fill(padded, -torch.inf).amax(-2).masked_fill_(none, 0.0)
        smallest = keys.masked_fill(padded, torch.inf).amin(-2).masked_fill_(none, 0.0)
        corner = torch.maximum(largest.abs(), smallest.abs()).norm(dim=-1)
        reach = torch.maximum(centre.norm(dim=-1) + radius, corner)
        box = torch.cat([largest, smallest], -1)
        return cls(*(x.flatten(0, 1) for x in (centre, radius, box, reach)))

    def largest_scores(self, q: Tensor, head: Tensor) -> Tensor:
        """At least the largest score that each query has in each block of keys: ``[R, M, N]``.

        Parameters
        ----------
        q : float64 Tensor ``[R, M, D]``
            R groups of M queries, times the factor of the scores (a negative one too).
        head : int64 Tensor ``[R]``
            The head of the keys of each group, counted over the batch: an index into the summaries.
        """
        length = q.norm(dim=-1, keepdim=True)
        ball = q @ self.centre[head].mT + length * self.radius[head, None]
        box = torch.cat([q.clamp_min(0), q.clamp_max(0)], -1) @ self.box[head].mT
        # Of the roundings (unit EPSILON / 2), at most 2 D + 8 compound in a product of 2 D terms, a norm of D or their sum, and
        # none of these terms exceeds length * reach (Cauchy-Schwarz); this is twice that.
        slack = (2 * q.shape[-1] + 16) * EPSILON * length * self.reach[head, None]
        return torch.minimum(ball, box).add_(slack).nan_to_num_(nan=torch.inf)  # NaN: a score overflows float64


def score_error(length: Tensor, reach: Tensor, dimension: int, dtype: torch.dtype) -> Tensor:
    """At most how far a score is from that of exact arithmetic: ``[R, M]`` (Higham 2002, section 3.1).

    Two roundings are those of the factor and of the difference from the threshold, two more a margin.

    Parameters
    ----------
    length : float64 Tensor ``[R, M]``
        Norms of queries, times the factor of the scores.
    reach : Tensor ``[R]``
        Largest norm of the keys that a group of queries visits.
    dtype : torch.dtype
        In which scores were computed, by IEEE arithmetic: not TF32.
    """
    return torch.finfo(dtype).eps * (dimension + 8) / 2 * length * reach[:, None]


def threshold_error(length: Tensor, reach: Tensor, keys: Tensor, dimension: int, dtype: torch.dtype) -> Tensor:
    """At most how far a threshold is above that of exact arithmetic on the same keys: ``[R, M]``.

    A threshold moves by no more than the largest change of a score, as it is monotone in the scores and moves along with their
    shift. That is :func:`score_error`, the rounding of the threshold itself included; here 8 times as much, for accumulators
    that truncate and partial sums.
    Given its scores, the threshold is where a sum over `keys` terms is 1. That sum is off by ``(keys / 2 + 8) * eps`` at most,
    and its slope is at least 1, as every term is at most 1 and the root of it that is differentiated no smaller: so the
    threshold is off by no more. Twice that, and 64 terms more for the last steps of a solver.

    Parameters
    ----------
    length : float64 Tensor ``[R, M]``
        Norms of queries, times the factor of the scores.
    reach, keys : Tensor ``[R]``
        Largest norm of the keys that a group of queries visits, and their number.
    dtype : torch.dtype
        In which scores and threshold were computed, by IEEE arithmetic: not TF32.
    """
    scores = 8 * score_error(length, reach, dimension, dtype)
    return scores + torch.finfo(dtype).eps * 2 * (keys[:, None] + 64)
