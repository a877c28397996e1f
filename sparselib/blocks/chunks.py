"""Contiguous chunks of tokens: their vectors, and the blocks that pairs of them make in the attention matrix (section 6.1)."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import pad

from sparselib.checks import Lengths, at_least, one_of
from sparselib.masks.visible import real_positions

POOLINGS = ("concatenate", "mean")


@dataclass(frozen=True)
class Chunks:
    """Chunks of ``size`` tokens (the paper's z); of size 1, each token is its own chunk.

    ``pooling`` makes one vector of the projected tokens of a chunk: "concatenate" puts them one after the other, with zeros for
    what is missing in the last chunk (the paper's "zero-padding"); "mean" averages the real ones.

    Raises ``ValueError`` if size < 1 or the pooling is unknown.

    >>> chunks = Chunks(size=2)
    >>> chunks.vectors(torch.arange(3.0).view(1, 1, 3, 1))[0, 0]
    tensor([[0., 1.],
            [2., 0.]])
    >>> chunks.blocks(torch.eye(4, dtype=torch.bool).view(1, 1, 4, 4))[0, 0].int()
    tensor([[1, 0],
            [0, 1]], dtype=torch.int32)
    """

    size: int = 1
    pooling: str = "concatenate"

    def __post_init__(self) -> None:
        at_least("size", self.size, 1)
        one_of("pooling", self.pooling, POOLINGS)

    def count(self, tokens: int | Tensor) -> int | Tensor:
        """Chunks that so many tokens fill, the last one perhaps in part."""
        return -(-tokens // self.size)

    def vectors(self, x: Tensor, lengths: Lengths = None) -> Tensor:
        """Projected tokens ``[B, H, n, R]`` -> chunks ``[B, H, N, z * R]``, or ``[B, H, N, R]`` of means; N = ceil(n / z).

        Raises ``ValueError`` for lengths outside 0 to n.
        """
        real = real_positions(x.shape[0], x.shape[2], lengths, x.device)[:, None, :, None]  # [B, 1, n, 1]
        split = self._split(x if lengths is None else x.masked_fill(~real, 0.0), 2)  # [B, H, N, z, R]
        if self.pooling == "concatenate":
            return split.flatten(3)
        return split.sum(3) / self._split(real, 2).sum(3).clamp_min(1)

    def blocks(self, pairs: Tensor) -> Tensor:
        """``Bool[B, H, n, m]`` -> ``Bool[B, H, N, M]``: blocks with any such pair, as "positive" is defined in section 6.1."""
        return self._split(self._split(pairs, 2).any(3), 3).any(4)

    def _split(self, x: Tensor, dim: int) -> Tensor:
        """Dimension `dim` of x ``[B, H, n, m]`` as chunks and their tokens, zeros (or False) at the end."""
        missing = -x.shape[dim] % self.size
        if missing:
            x = pad(x, (0, missing) if dim == 3 else (0, 0, 0, missing))
        return x.unflatten(dim, (-1, self.size))


#: Every token by itself.
TOKENS = Chunks()
