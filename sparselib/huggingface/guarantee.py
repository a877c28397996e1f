"""Which settings miss less than is allowed, with a confidence: finite samples, no assumption on the model or the text.

Settings are tested one after the other in an order that was fixed before, from the densest on, up to the first that is not
certified ("Learn then Test", Angelopoulos et al. 2021, fixed-sequence testing): then the chance that the last one misses more
than is allowed is at most ``1 - confidence``. The test of one setting is a bet against it (Waudby-Smith and Ramdas 2020,
"Estimating means of bounded random variables by betting"): where the mean loss is not below the limit, the capital is not
expected to grow, and reaches ``1 / (1 - confidence)`` with a probability of at most ``1 - confidence`` (Ville's inequality).
"""

import math

import torch
from torch import Tensor

#: Of all that could be lost in a round, so that one sequence of which all is missed does not end the bet.
LARGEST_BET = 0.9


def sequences_needed(allowed: float, confidence: float) -> int:
    """How many sequences certify a setting that misses nothing."""
    return math.ceil(-math.log(1 - confidence) / math.log1p(allowed * LARGEST_BET / (1 - allowed)))


def certified(losses: Tensor, allowed: float, confidence: float) -> Tensor:
    """Where the mean loss is below ``allowed``: ``[..., N]``, losses in 0..1 of N independent sequences -> ``Bool[...]``."""
    losses = losses.double()
    number = torch.arange(1, losses.shape[-1] + 1, dtype=torch.float64, device=losses.device)
    # Of the sequences before: a bet may not know its own round. One loss of half of what is allowed is put before them.
    start = allowed / 2
    sums, squares = (x.cumsum(-1) - x for x in (losses, losses.square()))
    mean = (start + sums) / number
    variance = (2 * start**2 + squares) / number - mean.square()
    edge = allowed - mean
    bet = (edge / (variance.clamp_min(0) + edge.square()).clamp_min(1e-12)).clamp(0, LARGEST_BET / (1 - allowed))
    capital = torch.log1p(bet * (allowed - losses)).cumsum(-1)
    return (capital >= -math.log(1 - confidence)).any(-1)


def last_certified(losses: Tensor, allowed: float, confidence: float) -> Tensor:
    """The last setting before the first that is not certified, or -1: ``[S, ..., N]`` -> integers ``[...]``."""
    passed = certified(losses, allowed, confidence)
    return passed.long().cumprod(0).sum(0) - 1
