"""Sparse Transformers' claims about models trained with its patterns; tests get the folder of one kind of data."""

from pathlib import Path

from replication.claims.char_lm import every_corpus, saved
from replication.claims.finding import Finding, Test, together
from replication.claims.scores import over_seeds
from replication.files.reading import read_table
from replication.files.verification import listed_files


def _below(worse: str, better: str) -> Test:
    """Return a test of by how many bits one model is below another, on every corpus."""
    return every_corpus([worse, better])(lambda corpus, table: [saved(corpus, table, worse, better)])


def _rows_and_columns(folder: Path) -> Finding:
    """Return the largest share of attention that a head of a dense model puts on its row, and on its column.

    A row is the last ``stride`` positions, so even uniform attention puts some share on it.
    """
    findings = {}
    for path in listed_files(folder, "*/parts.csv"):
        best = read_table(path).groupby("seed")[["row", "column"]].max()
        findings[path.parent.name] = Finding(
            [over_seeds(f"attention on the {part}, best head", 100 * best[part], "model") for part in best]
        )
    if not findings:
        raise FileNotFoundError(f"{folder}: must contain */parts.csv; run the workflow first")
    return together(findings)


#: Tests of the claims on pixels, and on text.
IMAGES: dict[str, Test] = {
    "fac-strided-on-images": _below("fixed", "strided"),
    "fac-strided-close-to-dense": _below("dense", "strided"),
    "fac-heads-learn-rows-and-columns": _rows_and_columns,
}
TEXT: dict[str, Test] = {
    "fac-fixed-on-text": _below("strided", "fixed"),
    "fac-fixed-close-to-dense": _below("dense", "fixed"),
}
