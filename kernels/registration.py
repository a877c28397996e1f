"""How operators are registered: by the parts of ``torch.library.custom_op``.

Its own call would first import torch.compile: seconds, and 150 MB.
"""

from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor

from ._ops import add_op_namespace_prefix, ops


def registered(
    name: str, function: Callable, fake: Callable, differentiate: Callable, setup_context: Callable | None = None
) -> torch._ops.OpOverload:
    """The operator of that name on every device, with its gradient; a function with annotations is its schema."""
    full = add_op_namespace_prefix(name)
    torch.library.define(full, torch.library.infer_schema(function, mutates_args=()))
    torch.library.impl(full, "default", _without_autocast(function))
    torch.library.register_fake(full, fake)
    torch.library.register_autograd(full, differentiate, setup_context=setup_context)
    return getattr(ops, name).default


def _without_autocast(function: Callable) -> Callable:
    """The function chooses the dtype of each step itself, whether or not it runs within ``torch.autocast``."""

    @wraps(function)
    def run(q: Tensor, *arguments) -> Tensor | tuple[Tensor, ...]:
        with torch.autocast(q.device.type, enabled=False):
            return function(q, *arguments)

    return run
