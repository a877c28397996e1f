"""What Sparse Transformers claims about models trained with its patterns; a test gets the folder of one kind of data."""

from pathlib import Path

from replication.claims.char_lm import every_corpus, saved
from replication.claims.finding import Finding, Test, together
from replication.claims.scores import over_seeds
from replication.files.reading import read_table


def _below(worse: str, better: str) -> Test:
    """Bits that one model is below another, on every corpus."""
    return every_corpus([worse, better])(lambda corpus, table: [saved(corpus, table, worse, better)])


def _rows_and_columns(folder: Path) -> Finding:
    """Share of its attention that the head with most of it puts on its row, and another on its column, of dense models.

    A row is the last ``stride`` positions, so that a head that attends to everything alike already has a share of them.
    """
    found = {}
    for path in sorted(folder.glob("*/parts.csv")):
        best = read_table(path).groupby("seed")[["row", "column"]].max()
        found[path.parent.name] = Finding(
            [over_seeds(f"attention on the {part}, best head", 100 * best[part], "model") for part in best]
        )
    if not found:
        raise FileNotFoundError(f"{folder}: no parts.csv")
    return together(found)


#: On pixels, and on text.
IMAGES: dict[str, Test] = {
    "fac-strided-on-images": _below("fixed", "strided"),
    "fac-strided-close-to-dense": _below("dense", "strided"),
    "fac-heads-learn-rows-and-columns": _rows_and_columns,
}
TEXT: dict[str, Test] = {
    "fac-fixed-on-text": _below("strided", "fixed"),
    "fac-fixed-close-to-dense": _below("dense", "fixed"),
}
