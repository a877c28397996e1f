"""Which positions a pattern reaches through others, as information flows from layer to layer."""

from torch import Tensor


def two_steps(second: Tensor, first: Tensor) -> Tensor:
    """``Bool[..., n, n]``: the query attends by ``second`` to some position that attends by ``first`` to the key.

    The boolean product second · first; ``first`` belongs to the earlier layer.
    """
    return second.float() @ first.float() > 0
