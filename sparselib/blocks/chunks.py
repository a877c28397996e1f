"""Contiguous chunks of tokens: their vectors, and the attention-matrix blocks between them (section 6.1)."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import pad

from sparselib.checks import Lengths, integer_at_least, one_of
from sparselib.masks.visible import real_positions

POOLINGS = ("concatenate", "mean")


@dataclass(frozen=True)
class Chunks:
    """Chunks of a fixed number of tokens (the paper's z).

    Parameters
    ----------
    size : int, the tokens per chunk, at least 1
    pooling : str
        ``"concatenate"`` joins a chunk's projected tokens into one vector, with zeros for tokens missing in the last chunk (the
        paper's "zero-padding"). ``"mean"`` averages the real tokens.

    Examples
    --------
    >>> Chunks(size=2).vectors(torch.arange(3.0).view(1, 1, 3, 1))[0, 0].tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """

    size: int = 1
    pooling: str = "concatenate"

    def __post_init__(self) -> None:
        integer_at_least("size", self.size, 1)
        one_of("pooling", self.pooling, POOLINGS)

    def count(self, tokens: int | Tensor) -> int | Tensor:
        """Return the number of chunks that `tokens` tokens fill, the last one perhaps in part."""
        return -(-tokens // self.size)

    def vectors(self, x: Tensor, lengths: Lengths = None) -> Tensor:
        """Return vectors ``[B, H, N, z * R]`` or, as means, ``[B, H, N, R]``, of ``x [B, H, n, R]``; N = ceil(n / z)."""
        real = real_positions(x.shape[0], x.shape[2], lengths, x.device)[:, None, :, None]  # [B, 1, n, 1]
        split = self._split(x if lengths is None else x.masked_fill(~real, 0.0), 2)  # [B, H, N, z, R]
        if self.pooling == "concatenate":
            return split.flatten(3)
        return split.sum(3) / self._split(real, 2).sum(3).clamp_min(1)

    def blocks(self, pairs: Tensor) -> Tensor:
        """Return the blocks ``Bool[B, H, N, M]`` that contain any of the pairs ``Bool[B, H, n, m]`` (section 6.1)."""
        return self._split(self._split(pairs, 2).any(3), 3).any(4)

    def _split(self, x: Tensor, dim: int) -> Tensor:
        missing = -x.shape[dim] % self.size
        if missing:
            x = pad(x, (0, missing) if dim == 3 else (0, 0, 0, missing))
        return x.unflatten(dim, (-1, self.size))


#: Each token as its own chunk.
TOKENS = Chunks()
