"""The interface of predictors of attention graphs, and the needs that they declare."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from torch import Tensor

from sparselib.checks import Lengths


@dataclass(frozen=True)
class Needs:
    """What a predictor needs besides a pair's query and key.

    Parameters
    ----------
    prefix : bool
        It ranks, routes or draws over the whole sequence, so decoding must keep the queries of the whole prefix.
    positions : bool
        It depends on positions and lengths alone, and ignores queries and keys.
    seed : bool
        It draws at random from its argument `seed`; give each layer and batch its own.
    centroids : str, optional
        The clustering that fits its argument `centroids`: ``"kmeans"`` or ``"routing"``.

    Examples
    --------
    >>> from sparselib.predictors import Clustering, Quantization
    >>> Clustering.needs
    Needs(prefix=False, positions=False, seed=False, centroids='kmeans')
    >>> Quantization.needs.prefix
    True
    """

    prefix: bool = False
    positions: bool = False
    seed: bool = False
    centroids: str | None = None


class Predictor(Protocol):
    """A predictor of attention graphs: a small frozen dataclass of hyper-parameters and fitted tensors.

    Examples
    --------
    >>> class Nearer:
    ...     needs = Needs()
    ...     def predict(self, q, k, *, lengths=None, causal=False):
    ...         return (q @ k.mT > 0).tril() if causal else q @ k.mT > 0
    >>> x = torch.tensor([-1.0, 2.0]).view(1, 1, 2, 1)
    >>> Nearer().predict(x, x, causal=True)[0, 0].int()
    tensor([[1, 0],
            [0, 1]], dtype=torch.int32)
    """

    needs: ClassVar[Needs]

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the pairs ``Bool[B, H, Q, K]`` that are predicted to have nonzero weight.

        Padded and future pairs are never True. :func:`sparselib.masks.combine` adds window and global tokens.

        Parameters
        ----------
        q, k : Tensor ``[B, H, Q, R]``, ``[B, H, K, R]``
            Queries and keys, projected if the predictor was fitted to projections.
        lengths : integers ``[B]``, optional
            Real tokens of each sentence; by default every token is real.
        causal : bool
            Whether later keys are hidden.

        Raises
        ------
        ValueError
            If shapes do not fit, real values are NaN or infinite, or lengths are outside 0 to n.
        """
        ...
