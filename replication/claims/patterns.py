"""What Sparse Transformers claims about models trained with its patterns; a test gets the folder of one kind of data."""

from functools import partial
from pathlib import Path

from replication.claims.char_lm import saved
from replication.claims.finding import Finding, Test
from replication.results import PATTERN_MODELS, read_characters


def _below(worse: str, better: str, folder: Path) -> Finding:
    """Bits that one model is below another, on every corpus."""
    tables = read_characters(folder, "measured.csv", PATTERN_MODELS)
    return Finding([saved(folder / corpus, table, worse, better) for corpus, table in tables.groupby("corpus")])


#: On pixels, and on text.
IMAGES: dict[str, Test] = {
    "fac-strided-on-images": partial(_below, "fixed", "strided"),
    "fac-strided-close-to-dense": partial(_below, "dense", "strided"),
}
TEXT: dict[str, Test] = {
    "fac-fixed-on-text": partial(_below, "strided", "fixed"),
    "fac-fixed-close-to-dense": partial(_below, "dense", "fixed"),
}
