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
    prefix : bool, whether it ranks, routes or draws over the whole sequence, so decoding must keep all queries
    positions : bool, whether it depends on positions and lengths alone
    seed : bool, whether it draws at random from its argument `seed`, of which each layer and batch needs its own
    centroids : ``"kmeans"`` or ``"routing"``, optional, the clustering that fits its argument `centroids`

    Examples
    --------
    >>> Needs(prefix=True, seed=True)
    Needs(prefix=True, positions=False, seed=True, centroids=None)
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
    >>> Nearer().predict(x, x, causal=True)[0, 0].int().tolist()
    [[1, 0], [0, 1]]
    """

    needs: ClassVar[Needs]

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the pairs ``Bool[B, H, Q, K]`` that are predicted to have nonzero weight, never padded or future ones.

        Parameters
        ----------
        q, k : Tensor ``[B, H, Q, R]``, ``[B, H, K, R]``, projected if the predictor was fitted to projections
        lengths : integers ``[B]``, optional, the real tokens of each sentence
        causal : bool, whether later keys are hidden

        Raises
        ------
        ValueError
            If shapes do not fit, real values are NaN or infinite, or lengths are outside 0 to n.
        """
        ...
