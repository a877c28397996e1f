"""Block-sparse entmax attention, implemented in the folder ``kernels/``."""
# That folder has no `__init__.py`: a regular package named `kernels` would shadow Hugging Face's, which transformers probes by
# importing it. A module with a `__path__` is a package too, so this module is the package `sparselib.kernels`.

from pathlib import Path

_HERE = Path(__file__).with_suffix("")  # where an installation puts the folder (pyproject.toml)
__path__ = [str(_HERE if _HERE.is_dir() else Path(__file__).parents[1] / "kernels")]

from sparselib.kernels.attention import block_sparse_entmax_attention  # noqa: E402
from sparselib.kernels.block_mask import BlockMask  # noqa: E402
from sparselib.kernels.certificate import Certificate  # noqa: E402
from sparselib.kernels.decoding import block_sparse_entmax_decode  # noqa: E402
from sparselib.kernels.varlen import block_sparse_entmax_varlen  # noqa: E402

__all__ = ["BlockMask", "Certificate", "block_sparse_entmax_attention", "block_sparse_entmax_decode",
           "block_sparse_entmax_varlen"]  # fmt: skip
