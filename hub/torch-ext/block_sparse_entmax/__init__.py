"""Block-sparse entmax attention: sparselib.kernels, as a kernel of Hugging Face's hub."""

from .attention import block_sparse_entmax_attention
from .block_mask import BlockMask
from .certificate import Certificate
from .decoding import block_sparse_entmax_decode

__all__ = [
    "BlockMask",
    "Certificate",
    "block_sparse_entmax_attention",
    "block_sparse_entmax_decode",
]
