"""Operator registration with the building blocks of ``torch.library.custom_op``.

``custom_op`` itself would import ``torch.compile`` first, which takes seconds and 150 MB of memory.
"""

from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor

from ._ops import add_op_namespace_prefix, ops


def registered(
    name: str, function: Callable, fake: Callable, differentiate: Callable, setup_context: Callable | None = None
) -> torch._ops.OpOverload:
    """Register an operator for all devices and return it.

    Parameters
    ----------
    name : str
        Name within this package's namespace.
    function : callable
        The implementation; its annotations define the operator's schema.
    fake : callable
        Returns empty outputs of the right shapes and dtypes, for ``torch.compile`` and export.
    differentiate : callable
        The backward pass, as for ``torch.library.register_autograd``.
    setup_context : callable, optional
        Saves tensors for the backward pass.

    Returns
    -------
    torch._ops.OpOverload
        The registered operator.
    """
    full_name = add_op_namespace_prefix(name)
    torch.library.define(full_name, torch.library.infer_schema(function, mutates_args=()))
    torch.library.impl(full_name, "default", _without_autocast(function))
    torch.library.register_fake(full_name, fake)
    torch.library.register_autograd(full_name, differentiate, setup_context=setup_context)
    return getattr(ops, name).default


def _without_autocast(function: Callable) -> Callable:
    """Disable ``torch.autocast`` inside a function that chooses the dtype of each step itself."""

    @wraps(function)
    def run(q: Tensor, *arguments) -> Tensor | tuple[Tensor, ...]:
        with torch.autocast(q.device.type, enabled=False):
            return function(q, *arguments)

    return run
