"""Pages of the site that are written from the stored ledgers: an interactive ledger, and a page for each claim."""

from replication.pages.claim import write_claims
from replication.pages.ledger import interactive

__all__ = ["interactive", "write_claims"]
