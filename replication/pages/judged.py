"""Claims with their verdicts in all stored runs."""

from dataclasses import dataclass

import pandas as pd

from replication.claims.finding import UNTESTED
from replication.claims.overview import demonstrates
from replication.claims.runs import PAPERS
from replication.tables.claims import DECIDED, outcomes, published, runs
from replication.tables.regimes import REGIMES, configuration, regime

#: What the papers' own tables have in place of a regime.
PRINTED = "the papers' own tables"


@dataclass(frozen=True)
class Claim:
    """A claim, and its row in the ledger of every run that measured something for it.

    Attributes
    ----------
    number : int
        Position in ``config/published/claims.csv``, from 1.
    stated : Series
        The claim's row there.
    rows : list of Series
        Rows of ledgers (:func:`replication.tables.claims.ledger`), each with its ``run`` and ``regime``.
    outcomes : dict of str to str
        By regime, the common outcome of its runs (:func:`replication.tables.claims.outcomes`).
    """

    number: int
    stated: pd.Series
    rows: list[pd.Series]
    outcomes: dict[str, str]

    @property
    def id(self) -> str:
        """Return the claim's id."""
        return self.stated["id"]

    @property
    def decided(self) -> list[pd.Series]:
        """Return the rows with a verdict on real data, in the order of their regimes, printed tables last."""
        order = [*REGIMES, PRINTED]
        rows = [row for row in self.rows if row["verdict"] in DECIDED and not demonstrates(row)]
        return sorted(rows, key=lambda row: order.index(row["regime"]))


def judged_claims() -> list[Claim]:
    """Return all claims in the order of ``config/published/claims.csv``."""
    claims, settings = published(), {}
    by_claim = {name: [] for name in claims["id"]}
    for run, table in runs().items():
        settings[run] = configuration(run)
        for _, row in table.iterrows():
            if row["verdict"] != UNTESTED or row["data"]:
                row["regime"] = PRINTED if run == PAPERS else regime(row["id"], settings[run])
                row["run"] = run
                by_claim[row["id"]].append(row)
    common = pd.concat([outcomes(kind) for kind in claims["kind"].unique()])
    return [
        Claim(number, row, by_claim[row["id"]], {name: word for name, word in common.loc[row["id"]].items() if word})
        for number, (_, row) in enumerate(claims.iterrows(), start=1)
    ]
