"""Block-sparse entmax attention: the one door from sparselib to the folder ``kernels/``.

That folder has no ``__init__.py``: a regular package called ``kernels`` would be taken for Hugging Face's, which transformers
probes by import. But a module with a ``__path__`` is a package, so this one is ``sparselib.kernels``.
"""

from pathlib import Path

_HERE = Path(__file__).with_suffix("")  # after an installation; pyproject maps the folder there
__path__ = [str(_HERE if _HERE.is_dir() else Path(__file__).parents[1] / "kernels")]

from sparselib.kernels.attention import block_sparse_entmax_attention  # noqa: E402
from sparselib.kernels.block_mask import BlockMask  # noqa: E402
from sparselib.kernels.certificate import Certificate  # noqa: E402
from sparselib.kernels.decoding import block_sparse_entmax_decode  # noqa: E402
from sparselib.kernels.varlen import block_sparse_entmax_varlen  # noqa: E402

__all__ = ["BlockMask", "Certificate", "block_sparse_entmax_attention", "block_sparse_entmax_decode",
           "block_sparse_entmax_varlen"]  # fmt: skip
