"""Block-sparse entmax attention: the one door from sparselib to the top-level folder ``kernels/``.

That folder has no ``__init__.py``: a regular package called ``kernels`` would be taken for Hugging Face's, which transformers
probes by import. A module with a ``__path__`` is a package, so this one is ``sparselib.kernels`` wherever its files lie: beside
it after an installation (pyproject maps the folder there), at the root of a checkout.
"""

from pathlib import Path

_INSTALLED = Path(__file__).with_suffix("")
__path__ = [str(_INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[1] / "kernels")]

from sparselib.kernels.attention import block_sparse_entmax_attention  # noqa: E402
from sparselib.kernels.block_mask import BlockMask  # noqa: E402
from sparselib.kernels.certificate import Certificate  # noqa: E402
from sparselib.kernels.decoding import block_sparse_entmax_decode  # noqa: E402
from sparselib.kernels.varlen import block_sparse_entmax_varlen  # noqa: E402

__all__ = [
    "BlockMask",
    "Certificate",
    "block_sparse_entmax_attention",
    "block_sparse_entmax_decode",
    "block_sparse_entmax_varlen",
]
