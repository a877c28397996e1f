"""Quest (Tang et al. 2024): key pages, ranked by an upper bound on each query's scores."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from sparselib.checks import Lengths, at_least
from sparselib.masks import visible_pairs
from sparselib.predictors import Needs


@dataclass(frozen=True)
class Quest:
    """Predictor of the `count` pages of `page` keys with the largest bounds ``sum_d max(q_d * min_d, q_d * max_d)``.

    Section 3.3 of the paper derives the bound. Minima and maxima are taken over the real keys of a page. Pages without a
    visible key are never selected, and all pages tied for the last place are kept.
    """

    needs: ClassVar[Needs] = Needs()

    page: int
    count: int

    def __post_init__(self) -> None:
        at_least("page", self.page, 1)
        at_least("count", self.count, 1)

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the selected pairs ``Bool[B, H, n, n]`` of queries and keys ``[B, H, n, D]``."""
        n = q.shape[2]
        visible = visible_pairs(q.shape[0], n, n, lengths, causal, q.device)
        real = visible.any(2)[..., None]  # [B, 1, n, 1]
        missing = -n % self.page
        low, high = (
            pad(k.masked_fill(~real, fill), (0, 0, 0, missing), value=fill).unflatten(2, (-1, self.page))
            for fill in (torch.inf, -torch.inf)
        )
        low, high = low.amin(3), high.amax(3)  # [B, H, P, D]
        # max(q m, q M) = q+ M + q- m. Pages without a real key have infinite bounds and are masked below.
        low, high = (x.nan_to_num(0.0, 0.0, 0.0) for x in (low, high))
        bound = q.clamp_min(0) @ high.mT + q.clamp_max(0) @ low.mT  # [B, H, n, P]
        open_pages = pad(visible, (0, missing)).unflatten(3, (-1, self.page)).any(4)
        bound = bound.masked_fill(~open_pages, -torch.inf)
        last = bound.topk(min(self.count, bound.shape[-1])).values[..., -1:]
        chosen = (bound >= last) & open_pages
        return chosen.repeat_interleave(self.page, dim=3)[..., :n] & visible
