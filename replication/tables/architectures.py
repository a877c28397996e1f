"""Verdicts on the transformers library's architectures: exact or refused."""

from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.tables.markers import markdown


def counts() -> str:
    """Return the number of architectures per verdict, of those whose config can be made tiny."""
    table = read_table(ROOT / "docs" / "architectures.csv")
    (version,) = table["transformers"].astype(str).unique()
    number = table["verdict"].value_counts()
    verdicts = ["exact", "refused", "silently wrong"]
    tried = sum(number.get(verdict, 0) for verdict in verdicts)
    row = [f"{tried} architectures of {version}", *(str(number.get(verdict, 0)) for verdict in verdicts)]
    return markdown(["transformers", "exact to 1e-5", "refused, with the reason", "silently wrong"], [row])
