"""The normalisers of fairseq's command line: this package's and the entmax package's, with alphas that are given or learned."""

from collections.abc import Callable
from functools import partial

import entmax as package
import torch
from torch import Tensor, nn

from sparselib.normalizers import Entmax, Normalizer, entmax, entmax15, sparsemax, topk_softmax

NORMALIZERS = ("softmax", "entmax15", "sparsemax", "entmax", "entmax_alpha", "topk")
#: The first is the default.
IMPLEMENTATIONS = ("sparselib", "entmax")
#: What the entmax package offers beside ours.
PACKAGES = {"entmax15": package.entmax15, "sparsemax": package.sparsemax, "entmax_alpha": package.entmax_bisect}
#: The smallest alpha that is learned, as in the code of Correia et al. (2019): at 1 the gradient is not defined.
SMALLEST_ALPHA = 1.01


class LearnedEntmax(nn.Module):
    """alpha-entmax with an alpha for each head that is learned, ``1 + sigmoid(pre_alpha)`` (Correia et al. 2019, section 3.3).

    Parameters
    ----------
    heads : int
    function : callable
        From scores ``[B, H, Q, K]`` and alphas ``[H, 1, 1]`` to probabilities.
    """

    def __init__(self, heads: int, function: Callable[[Tensor, Tensor], Tensor] = entmax):
        super().__init__()
        self.function = function
        self.pre_alpha = nn.Parameter(torch.zeros(heads))  # alpha 1.5

    @property
    def alpha(self) -> Tensor:
        """``[H]``, in float32 at least: half precision has few numbers just above 1."""
        precise = self.pre_alpha.to(torch.promote_types(self.pre_alpha.dtype, torch.float32))
        return (1 + precise.sigmoid()).clamp_min(SMALLEST_ALPHA)

    def forward(self, scores: Tensor) -> Tensor:
        """Scores ``[B, H, Q, K]`` to probabilities."""
        return self.function(scores, self.alpha[:, None, None])


def normalizer_of(args, heads: int) -> Normalizer:
    """The normaliser of one layer that the command line names; with ``entmax_alpha`` a module of its own.

    Raises ``ValueError`` if alpha or k is missing or out of range, or the entmax package is asked for what it has not.
    """
    name = args.attention_normalizer
    # A model that was trained before there was a choice has no such option.
    packages = getattr(args, "attention_implementation", None) == "entmax"
    if packages and name not in PACKAGES:
        raise ValueError(f"--attention-implementation entmax is for {', '.join(PACKAGES)}; not for {name}")
    match name:
        case "softmax":
            return Entmax(1)
        case "entmax15" | "sparsemax" if packages:
            return partial(_in_float32, PACKAGES[name])
        case "entmax15":
            return entmax15
        case "sparsemax":
            return sparsemax
        case "entmax":
            if args.attention_alpha is None or args.attention_alpha < 1:
                raise ValueError(f"--attention-alpha must be at least 1 for entmax; got {args.attention_alpha}")
            return Entmax(args.attention_alpha)
        case "entmax_alpha":
            return LearnedEntmax(heads, partial(_in_float32, PACKAGES[name]) if packages else entmax)
        case "topk":
            if args.attention_k is None or args.attention_k < 1:
                raise ValueError(f"--attention-k must be at least 1 for topk; got {args.attention_k}")
            return partial(topk_softmax, k=args.attention_k)
        case other:
            raise ValueError(f"--attention-normalizer {other!r} is unknown")


def _in_float32(function: Callable[..., Tensor], scores: Tensor, *alpha: Tensor) -> Tensor:
    """A function of the package on scores of any precision: in half, its cumulative sums and bisection would be lost."""
    precise = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return function(precise, *alpha, dim=-1).to(scores.dtype)
