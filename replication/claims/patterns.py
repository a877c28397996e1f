"""What Sparse Transformers claims about models trained with its patterns; a test gets the folder of one kind of data."""

from replication.claims.char_lm import every_corpus, saved
from replication.claims.finding import Test


def _below(worse: str, better: str) -> Test:
    """Bits that one model is below another, on every corpus."""
    return every_corpus([worse, better])(lambda corpus, table: [saved(corpus, table, worse, better)])


#: On pixels, and on text.
IMAGES: dict[str, Test] = {
    "fac-strided-on-images": _below("fixed", "strided"),
    "fac-strided-close-to-dense": _below("dense", "strided"),
}
TEXT: dict[str, Test] = {
    "fac-fixed-on-text": _below("strided", "fixed"),
    "fac-fixed-close-to-dense": _below("dense", "fixed"),
}
