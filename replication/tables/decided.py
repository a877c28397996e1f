"""Tables of claims that some runs decide, with a column per run."""

from replication.claims.overview import needed
from replication.tables.claims import DECIDED, runs, verdict
from replication.tables.markers import markdown


def decided(of: tuple[str, ...], prefixes: tuple[str, ...]) -> str:
    """Return the claims that one of these runs decides, with a column per run and the criterion."""
    shown = {name: table.set_index("id") for name, table in runs().items() if name in of}
    rows = []
    for claim in shown[of[0]].itertuples():
        cells = {name: shown[name].loc[claim.Index] for name in of}
        if claim.Index.startswith(prefixes) and any(row["verdict"] in DECIDED for row in cells.values()):
            rows.append([claim.statement, *(verdict(row) for row in cells.values()), needed(cells[of[0]])])
    return markdown(["claim", *(f"{name}: effect (95 % interval)" for name in of), "the effect has to be"], rows)


def masked_lm() -> str:
    """Return the claims decided on Brown, by two models at the papers' sequence length and one at a quarter of it."""
    return decided(("brown-512", "brown-512-seed1", "brown"), ("sparse-consistency", "mlm-", "blocks-"))


def translation() -> str:
    """Return the claims decided on Darby's verses and on Multi30k's short sentences."""
    return decided(("darby", "darby-near-gold", "darby-budgets", "darby-en-de", "multi30k"), ("mt-",))


def forms() -> str:
    """Return the claims decided by attention forms on Multi30k and Darby, and by normalisers on Multi30k."""
    return decided(("multi30k-forms", "darby-forms", "multi30k-speed"), ("est-", "xst-"))


def documents() -> str:
    """Return the claims decided on Darby's chapters."""
    return decided(("darby-documents",), ("xst-documents-",))


def characters() -> str:
    """Return the claims decided on War and Peace."""
    return decided(("war-and-peace-512", "war-and-peace-spans"), ("clm-",))
