"""What every predictor of attention graphs offers, and what it declares to need."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from torch import Tensor

from sparselib.checks import Lengths


@dataclass(frozen=True)
class Needs:
    """What a predictor looks at beside the query and the key of a pair, and what it has to be made with.

    >>> from sparselib.predictors import Clustering, Quantization
    >>> Clustering.needs
    Needs(prefix=False, positions=False, seed=False, centroids='kmeans')
    >>> Quantization.needs.prefix
    True
    """

    #: More of the sequence: it ranks, routes or draws over all of it. When decoding, it needs the queries of the whole prefix.
    prefix: bool = False
    #: Positions and lengths alone; it never looks at queries and keys.
    positions: bool = False
    #: It draws at random, from an argument `seed`: give each layer and batch its own.
    seed: bool = False
    #: It has an argument `centroids`, fitted by this kind of clustering: ``"kmeans"`` or ``"routing"``.
    centroids: str | None = None


class Predictor(Protocol):
    """A small frozen dataclass of hyper-parameters and fitted tensors.

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
        """Which pairs are predicted to have a weight: ``[B, H, Q, R]``, ``[B, H, K, R]`` -> ``Bool[B, H, Q, K]``.

        Never True for a padded or a future pair. Window and global tokens are united with it elsewhere
        (:func:`sparselib.masks.combine`).
        """
        ...
