"""The interactive ledger: one HTML file that works without network, with a row per claim."""

from itertools import groupby
from pathlib import Path

import jinja2

from replication.claims.overview import SIGNS, effect, needed
from replication.pages.drawn import strip
from replication.pages.judged import judged_claims
from replication.tables.claims import OUTCOMES, over
from replication.tables.regimes import REGIMES


def interactive() -> str:
    """Return the ledger as HTML; its rows link to the claims' pages, which lie in the same folder."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"effect": lambda row: effect(row, row["unit"]), "over": over, "needed": needed}
    claims = judged_claims()
    used = {outcome for claim in claims for outcome in claim.outcomes.values()}
    return environment.get_template("ledger.html").render(
        papers=[(paper, [*rows]) for paper, rows in groupby(claims, key=lambda claim: claim.stated["paper"])],
        regimes=[name for name in REGIMES if any(name in claim.outcomes for claim in claims)],
        outcomes=[outcome for outcome in OUTCOMES if outcome in used],
        signs=SIGNS,
        strip=strip,
    )
