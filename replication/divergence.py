"""Training that diverges stops at once: its model is nothing, and its tables would be full of what is no number."""

import math


def check_loss(loss: float, step: int, learning_rate: float) -> float:
    """The loss itself, if it is finite.

    Raises ``ValueError``, which names the step and the learning rate, if it is not.
    """
    if not math.isfinite(loss):
        raise ValueError(
            f"training diverged: the loss of step {step} is {loss}, at a learning rate of {learning_rate:g}"
        )
    return loss
