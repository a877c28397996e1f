"""Position patterns with the interface of a predictor: baselines that never look at queries and keys."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparselib import masks
from sparselib.checks import Lengths, at_least, one_of
from sparselib.masks.visible import visible_pairs
from sparselib.predictors.inputs import checked_inputs
from sparselib.predictors.protocol import Needs


class Positional(ABC):
    """A predictor that depends on positions and lengths only; subclasses say which pattern it is.

    >>> class EveryOther(Positional):
    ...     def pattern(self, lengths, heads):
    ...         return masks.dilated(3, 2)
    >>> x = torch.zeros(1, 1, 4, 8)
    >>> EveryOther().predict(x, x)[0, 0].int()
    tensor([[1, 0, 1, 0],
            [0, 1, 0, 1],
            [1, 0, 1, 0],
            [0, 1, 0, 1]], dtype=torch.int32)
    """

    needs: ClassVar[Needs] = Needs(prefix=True, positions=True)

    @abstractmethod
    def pattern(self, lengths: Tensor, heads: int) -> masks.Pattern:
        """The pattern for a batch of sentences of these real lengths ``[B]``."""

    def predict(self, q: Tensor, k: Tensor, *, lengths: Lengths = None, causal: bool = False) -> Tensor:
        """``[B, H, N, R]`` twice -> ``Bool[B, H, N, N]``.

        Raises ``ValueError`` for malformed inputs or lengths, and for unequal numbers of queries and keys.
        """
        if q.shape != k.shape:
            raise ValueError(f"patterns need q and k of one shape, got {q.shape} and {k.shape}")
        tokens, _ = checked_inputs(q, k, lengths)
        batch, heads, positions, _ = q.shape
        real_lengths = tokens.real.sum(dim=(1, 2, 3))
        dense = masks.to_dense(self.pattern(real_lengths, heads), batch, heads, positions, device=q.device)
        return dense & visible_pairs(batch, positions, positions, lengths, causal, q.device)


@dataclass(frozen=True)
class Nothing(Positional):
    """No edge at all: what remains of the window baseline before window and global tokens are added.

    >>> x = torch.zeros(1, 1, 4, 8)
    >>> Nothing().predict(x, x).any()
    tensor(False)
    """

    def pattern(self, lengths: Tensor, heads: int) -> masks.Pattern:
        return masks.nothing()


@dataclass(frozen=True)
class Longformer(Positional):
    """``masks.longformer`` with `global_count` random global tokens per sentence.

    Every call draws anew from `seed`: give each layer and batch its own seed, or they share their draws.
    Raises ``ValueError`` if global_count < 0.

    >>> x = torch.zeros(1, 1, 6, 8)
    >>> Longformer(global_count=1, seed=0).predict(x, x).sum()
    tensor(16)
    """

    needs: ClassVar[Needs] = Needs(prefix=True, positions=True, seed=True)

    global_count: int
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("global_count", self.global_count, 0)

    def pattern(self, lengths: Tensor, heads: int) -> masks.Pattern:
        return masks.longformer(self.global_count, lengths, torch.Generator().manual_seed(self.seed))


@dataclass(frozen=True)
class BigBird(Positional):
    """``masks.bigbird`` with `random_keys` random keys per row and head; seeds as in `Longformer`.

    Raises ``ValueError`` if random_keys < 0 or the scope is unknown.

    >>> x = torch.zeros(1, 1, 9, 8)
    >>> BigBird(random_keys=2, seed=0).predict(x, x)[0, 0].sum(-1).max()  # the first and the last token see everything
    tensor(9)
    """

    needs: ClassVar[Needs] = Needs(prefix=True, positions=True, seed=True)

    random_keys: int
    seed: int = 0
    random_scope: str = "uniform"

    def __post_init__(self) -> None:
        at_least("random_keys", self.random_keys, 0)
        one_of("random_scope", self.random_scope, masks.RANDOM_SCOPES)

    def pattern(self, lengths: Tensor, heads: int) -> masks.Pattern:
        generator = torch.Generator().manual_seed(self.seed)
        return masks.bigbird(self.random_keys, lengths, heads, generator, self.random_scope)
