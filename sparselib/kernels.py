"""Block-sparse entmax attention, implemented in the folder ``kernels/``."""
# That folder has no `__init__.py`: a regular package named `kernels` would shadow Hugging Face's, which transformers probes by
# importing it. A module with a `__path__` is a package too, so this module is the package `sparselib.kernels`. In an
# installation it is the folder's `__init__.py` (setup.py), and the path is the same.

from pathlib import Path

__path__ = [str(Path(__file__).parents[1] / "kernels")]

from sparselib.kernels.attention import block_sparse_entmax_attention
from sparselib.kernels.block_mask import BlockMask
from sparselib.kernels.certificate import Certificate
from sparselib.kernels.decoding import block_sparse_entmax_decode
from sparselib.kernels.varlen import block_sparse_entmax_varlen

__all__ = ["BlockMask", "Certificate", "block_sparse_entmax_attention", "block_sparse_entmax_decode",
           "block_sparse_entmax_varlen"]  # fmt: skip
