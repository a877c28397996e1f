"""The namespace of this package's operators: another one in each copy, so that two copies live in one process.

Hugging Face's kernel-builder, which gives each build a namespace of its own, writes a module of this name with the same two
names into what it builds, in place of this one.
"""

import torch

_NAMESPACE = __package__.replace(".", "_")

ops = getattr(torch.ops, _NAMESPACE)


def add_op_namespace_prefix(op_name: str) -> str:
    """The full name of an operator, ``namespace::op_name``."""
    return f"{_NAMESPACE}::{op_name}"
