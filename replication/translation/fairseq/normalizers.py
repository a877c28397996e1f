"""Normalisers for fairseq's command line, from sparselib and the entmax package, with fixed or learned alphas."""

from collections.abc import Callable
from functools import partial

import entmax as package
import torch
from torch import Tensor, nn

from sparselib.normalizers import Entmax, Normalizer, entmax, entmax15, sparsemax, topk_softmax

NORMALIZERS = ("softmax", "entmax15", "sparsemax", "entmax", "entmax_alpha", "topk")
#: The first is the default.
IMPLEMENTATIONS = ("sparselib", "entmax")
#: Normalisers of the entmax package.
PACKAGES = {"entmax15": package.entmax15, "sparsemax": package.sparsemax, "entmax_alpha": package.entmax_bisect}
#: Lower bound of learned alphas, as in the code of Correia et al. (2019), because the gradient is undefined at 1.
SMALLEST_ALPHA = 1.01


class LearnedEntmax(nn.Module):
    """alpha-entmax with a learned alpha per head, ``1 + sigmoid(pre_alpha)`` (Correia et al. 2019, section 3.3).

    Parameters
    ----------
    heads : int
        Heads of the layer.
    function : callable
        Function of scores ``[B, H, Q, K]`` and alphas ``[H, 1, 1]`` that returns probabilities.
    """

    def __init__(self, heads: int, function: Callable[[Tensor, Tensor], Tensor] = entmax):
        super().__init__()
        self.function = function
        self.pre_alpha = nn.Parameter(torch.zeros(heads))  # alpha 1.5

    @property
    def alpha(self) -> Tensor:
        """Return the alphas ``[H]`` in at least float32, because half precision has few numbers just above 1."""
        precise = self.pre_alpha.to(torch.promote_types(self.pre_alpha.dtype, torch.float32))
        return (1 + precise.sigmoid()).clamp_min(SMALLEST_ALPHA)

    def forward(self, scores: Tensor) -> Tensor:
        """Return the probabilities of scores ``[B, H, Q, K]``."""
        return self.function(scores, self.alpha[:, None, None])


def normalizer_of(args, heads: int) -> Normalizer:
    """Return the normaliser of one layer, as named on the command line.

    Parameters
    ----------
    args : Namespace
        fairseq's options.
    heads : int
        Heads of the layer.

    Returns
    -------
    Normalizer
        A function, or a new :class:`LearnedEntmax` for ``entmax_alpha``.

    Raises
    ------
    ValueError
        If alpha or k is missing or out of range, or the entmax package does not have the normaliser.
    """
    name = args.attention_normalizer
    # Models trained by earlier versions lack this option.
    use_package = getattr(args, "attention_implementation", None) == "entmax"
    if use_package and name not in PACKAGES:
        raise ValueError(
            f"--attention-normalizer must be one of {', '.join(PACKAGES)} with --attention-implementation entmax, got {name}"
        )
    match name:
        case "softmax":
            return Entmax(1)
        case "entmax15" | "sparsemax" if use_package:
            packaged = partial(_in_float32, PACKAGES[name])
            packaged.alpha = 1.5 if name == "entmax15" else 2.0
            return packaged
        case "entmax15":
            return entmax15
        case "sparsemax":
            return sparsemax
        case "entmax":
            if args.attention_alpha is None or args.attention_alpha < 1:
                raise ValueError(f"--attention-alpha must be at least 1 for entmax, got {args.attention_alpha}")
            return Entmax(args.attention_alpha)
        case "entmax_alpha":
            return LearnedEntmax(heads, partial(_in_float32, PACKAGES[name]) if use_package else entmax)
        case "topk":
            if args.attention_k is None or args.attention_k < 1:
                raise ValueError(f"--attention-k must be at least 1 for topk, got {args.attention_k}")
            return partial(topk_softmax, k=args.attention_k)
        case other:
            raise ValueError(f"--attention-normalizer must be one of {', '.join(NORMALIZERS)}; got {other!r}")


def _in_float32(function: Callable[..., Tensor], scores: Tensor, *alpha: Tensor) -> Tensor:
    """Apply a function of the entmax package in at least float32, since half precision breaks its sums and bisection."""
    precise = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return function(precise, *alpha, dim=-1).to(scores.dtype)
