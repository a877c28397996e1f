"""Position patterns as predictors: baselines that ignore queries and keys."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib import masks
from sparselib.checks import Lengths, integer_at_least, one_of
from sparselib.masks.visible import visible_pairs
from sparselib.predictors.inputs import checked_inputs
from sparselib.predictors.protocol import Needs


class Positional(ABC):
    """A predictor that depends on positions and lengths only; subclasses implement :meth:`pattern`.

    Examples
    --------
    >>> class EveryOther(Positional):
    ...     def pattern(self, lengths, heads):
    ...         return masks.dilated(3, 2)
    >>> EveryOther().predict(torch.zeros(1, 1, 4, 8), torch.zeros(1, 1, 4, 8))[0, 0].int().tolist()
    [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    """

    needs: ClassVar[Needs] = Needs(prefix=True, positions=True)

    @abstractmethod
    def pattern(self, lengths: Tensor, heads: int) -> masks.Pattern:
        """Return the pattern of a batch of sentences with real lengths ``[B]``."""

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """Return the pattern's visible pairs, ``Bool[B, H, N, N]``; see :meth:`Predictor.predict`.

        Raises
        ------
        ValueError
        """
        if q.shape != k.shape:
            raise ValueError(
                f"`q` and `k` must have one shape for a pattern, got {tuple(q.shape)} and {tuple(k.shape)}"
            )
        tokens, _ = checked_inputs(q, k, lengths)
        batch, heads, positions, _ = q.shape
        real_lengths = tokens.real.sum(dim=(1, 2, 3))
        dense = masks.to_dense(self.pattern(real_lengths, heads), batch, heads, positions, device=q.device)
        return dense & visible_pairs(batch, positions, positions, lengths, causal, q.device)


@dataclass(frozen=True)
class Nothing(Positional):
    """No edge at all: the window baseline before window and global tokens are added.

    Examples
    --------
    >>> Nothing().predict(torch.zeros(1, 1, 4, 8), torch.zeros(1, 1, 4, 8)).any()
    tensor(False)
    """

    def pattern(self, lengths: Tensor, heads: int) -> masks.Pattern:
        return masks.nothing()


@dataclass(frozen=True)
class Longformer(Positional):
    """The diagonal and random global tokens, as in :func:`sparselib.masks.longformer`.

    Parameters
    ----------
    global_count : int, the random global tokens per sentence, at least 0
    seed : int, from which every call draws anew, so give each layer and batch its own

    Examples
    --------
    >>> Longformer(global_count=1, seed=0).predict(torch.zeros(1, 1, 6, 8), torch.zeros(1, 1, 6, 8)).sum()
    tensor(16)
    """

    needs: ClassVar[Needs] = Needs(prefix=True, positions=True, seed=True)

    global_count: int
    seed: int = 0

    def __post_init__(self) -> None:
        integer_at_least("global_count", self.global_count, 0)

    def pattern(self, lengths: Tensor, heads: int) -> masks.Pattern:
        return masks.longformer(self.global_count, lengths, torch.Generator().manual_seed(self.seed))


@dataclass(frozen=True)
class BigBird(Positional):
    """Window, global and random keys, as in :func:`sparselib.masks.bigbird`.

    Parameters
    ----------
    random_keys : int, per row and head, at least 0
    seed : int, as in :class:`Longformer`
    random_scope : ``"uniform"`` or ``"official_plan"``

    Examples
    --------
    >>> BigBird(random_keys=2, seed=0).predict(torch.zeros(1, 1, 9, 8), torch.zeros(1, 1, 9, 8))[0, 0].sum(-1).max()
    tensor(9)
    """

    needs: ClassVar[Needs] = Needs(prefix=True, positions=True, seed=True)

    random_keys: int
    seed: int = 0
    random_scope: str = "uniform"

    def __post_init__(self) -> None:
        integer_at_least("random_keys", self.random_keys, 0)
        one_of("random_scope", self.random_scope, masks.RANDOM_SCOPES)

    def pattern(self, lengths: Tensor, heads: int) -> masks.Pattern:
        generator = torch.Generator().manual_seed(self.seed)
        return masks.bigbird(self.random_keys, lengths, heads, generator, self.random_scope)
