"""Contiguous chunks of tokens: their vectors, and the attention-matrix blocks between them (section 6.1)."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import pad

from sparselib.checks import Lengths, at_least, one_of
from sparselib.masks.visible import real_positions

POOLINGS = ("concatenate", "mean")


@dataclass(frozen=True)
class Chunks:
    """Chunks of a fixed number of tokens (the paper's z).

    Parameters
    ----------
    size : int
        Tokens per chunk, at least 1; with 1, each token is its own chunk.
    pooling : str
        ``"concatenate"`` joins the projected tokens of a chunk into one vector, with zeros for tokens missing in the last chunk
        (the paper's "zero-padding"). ``"mean"`` averages the real tokens.

    Raises
    ------
    ValueError
        If `size` is below 1 or the pooling is unknown.

    Examples
    --------
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
        """Return the number of chunks that `tokens` tokens fill, the last one perhaps in part."""
        return -(-tokens // self.size)

    def vectors(self, x: Tensor, lengths: Lengths = None) -> Tensor:
        """Return the vectors of chunks, ``[B, H, N, z * R]`` or, as means, ``[B, H, N, R]``.

        Parameters
        ----------
        x : Tensor ``[B, H, n, R]``
            Projected tokens; N = ceil(n / z).
        lengths : integers ``[B]``, optional
            Real tokens of each sentence.

        Raises
        ------
        ValueError
            If lengths are outside 0 to n.
        """
        real = real_positions(x.shape[0], x.shape[2], lengths, x.device)[:, None, :, None]  # [B, 1, n, 1]
        split = self._split(x if lengths is None else x.masked_fill(~real, 0.0), 2)  # [B, H, N, z, R]
        if self.pooling == "concatenate":
            return split.flatten(3)
        return split.sum(3) / self._split(real, 2).sum(3).clamp_min(1)

    def blocks(self, pairs: Tensor) -> Tensor:
        """Return the blocks ``Bool[B, H, N, M]`` that contain any of the pairs ``Bool[B, H, n, m]`` (section 6.1)."""
        return self._split(self._split(pairs, 2).any(3), 3).any(4)

    def _split(self, x: Tensor, dim: int) -> Tensor:
        """Split dimension `dim` of ``x [B, H, n, m]`` into chunks and tokens, padded with zeros (or False)."""
        missing = -x.shape[dim] % self.size
        if missing:
            x = pad(x, (0, missing) if dim == 3 else (0, 0, 0, missing))
        return x.unflatten(dim, (-1, self.size))


#: Each token as its own chunk.
TOKENS = Chunks()
