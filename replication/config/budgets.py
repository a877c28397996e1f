"""The section `budgets`: shares of the visible pairs at which methods are compared."""

from pydantic import Field

from replication.schema import Section
from replication.schema import types as t


class Budgets(Section):
    """Budgets: shares of the visible pairs that a method computes. All methods are compared at the same ones."""

    gold_multiples: t.Unique[t.AboveZero] = Field(
        [1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0], description="Multiples of the gold graph's share of the pairs."
    )
    shares: t.Unique[t.Share] = Field([0.05, 0.1, 0.2, 0.3, 0.5], description="Shares of all visible pairs.")
