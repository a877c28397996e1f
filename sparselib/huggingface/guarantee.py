"""Certified settings: their mean loss is below a limit with a confidence, for finite samples of independent losses.

Settings are tested in an order fixed in advance, from the densest on, up to the first that is not certified (fixed-sequence
testing; Angelopoulos et al. 2021, "Learn then Test"). The probability that the last certified setting misses more than allowed
is then at most ``1 - confidence``. Each test bets against its setting (Waudby-Smith and Ramdas 2020, "Estimating means of
bounded random variables by betting"). If the mean loss is not below the limit, the capital is not expected to grow, and it
reaches ``1 / (1 - confidence)`` with a probability of at most ``1 - confidence`` (Ville's inequality). Losses of one document's
sequences are not independent, so a bet is about a document's mean loss (:mod:`sparselib.huggingface.halves`).
"""

import math

import torch
from torch import Tensor

#: Largest bet as a share of the capital at risk in a round, so that one sequence with loss 1 does not end the test.
LARGEST_BET = 0.9


def sequences_needed(allowed: float, confidence: float) -> int:
    """Return how many sequences certify a setting that misses nothing."""
    return math.ceil(-math.log(1 - confidence) / math.log1p(allowed * LARGEST_BET / (1 - allowed)))


def certified(losses: Tensor, allowed: float, confidence: float) -> Tensor:
    """Certify a mean loss below `allowed`: losses ``[..., N]`` in 0..1 of N independent sequences -> ``Bool[...]``."""
    losses = losses.double()
    number = torch.arange(1, losses.shape[-1] + 1, dtype=torch.float64, device=losses.device)
    # A bet may depend on earlier sequences only. They are preceded by one loss of half the allowed loss.
    start = allowed / 2
    sums, squares = (x.cumsum(-1) - x for x in (losses, losses.square()))
    mean = (start + sums) / number
    variance = (2 * start**2 + squares) / number - mean.square()
    edge = allowed - mean
    bet = (edge / (variance.clamp_min(0) + edge.square()).clamp_min(1e-12)).clamp(0, LARGEST_BET / (1 - allowed))
    capital = torch.log1p(bet * (allowed - losses)).cumsum(-1)
    return (capital >= -math.log(1 - confidence)).any(-1)


def last_certified(losses: Tensor, allowed: float, confidence: float) -> Tensor:
    """Return the last setting before the first uncertified one, or -1: ``[S, ..., N]`` -> integers ``[...]``."""
    passed = certified(losses, allowed, confidence)
    return passed.long().cumprod(0).sum(0) - 1
