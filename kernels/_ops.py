"""Operator namespace, different for each copy of this package, so that several copies can be loaded in one process.

Hugging Face's kernel-builder replaces this module in each build. Its version defines the same two names with a unique
namespace.
"""

import torch

_NAMESPACE = __package__.replace(".", "_")

ops = getattr(torch.ops, _NAMESPACE)


def add_op_namespace_prefix(op_name: str) -> str:
    """Return the full name of an operator.

    Parameters
    ----------
    op_name : str
        Name within this package's namespace.

    Returns
    -------
    str
        ``namespace::op_name``.
    """
    return f"{_NAMESPACE}::{op_name}"
