"""Block-sparse entmax attention, implemented in the folder ``kernels/``."""
# That folder has no `__init__.py`: a regular package named `kernels` would shadow Hugging Face's, which transformers probes by
# importing it. A module with a `__path__` is a package too, so this module is the package `sparselib.kernels`. In an
# installation it is the folder's `__init__.py` (setup.py), and the path is the same.

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

__path__ = [str(Path(__file__).parents[1] / "kernels")]

if TYPE_CHECKING:
    from sparselib.kernels.attention import block_sparse_entmax_attention
    from sparselib.kernels.block_mask import BlockMask
    from sparselib.kernels.certificate import Certificate
    from sparselib.kernels.decoding import block_sparse_entmax_decode

# Imported on first access, so that a result depends on the kernels that compute it, and on no others.
_MODULES = {
    "BlockMask": "block_mask",
    "Certificate": "certificate",
    "block_sparse_entmax_attention": "attention",
    "block_sparse_entmax_decode": "decoding",
}
__all__ = ["BlockMask", "Certificate", "block_sparse_entmax_attention", "block_sparse_entmax_decode"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
