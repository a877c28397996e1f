"""Table 25 of Explicit Sparse Transformer on Multi30k: one translator with each normaliser."""

from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.tables.markers import markdown

TABLE = ROOT / "reported" / "multi30k-speed" / "normalizer_speed" / "speed.csv"
NAMES = {"softmax": "softmax", "topk": "top-k", "sparsemax": "sparsemax", "entmax15": "entmax-1.5",
         "entmax_alpha": "entmax, learned alphas"}  # fmt: skip


def table25() -> str:
    """Return the tokens per second in training and in beam search, also relative to softmax, and BLEU."""
    rows = []
    for row in read_table(TABLE).itertuples():
        speeds = [
            f"{per_second:,.0f} ({relative:.2f})"
            for per_second, relative in (
                (row.train_tokens_per_second, row.train_relative),
                (row.decode_tokens_per_second, row.decode_relative),
            )
        ]
        alone = f"{1e3 * row.normalizer_seconds:.1f} ({row.normalizer_relative:.2f})"
        rows.append(
            [NAMES[row.contender], row.implementation, *speeds, alone, f"{row.bleu:.1f}", f"{row.attended:.1f}"]
        )
    header = [
        "training, tokens / s (x softmax)",
        "beam search, tokens / s",
        "normaliser alone, ms",
        "BLEU",
        "keys attended",
    ]
    return markdown(["normaliser", "implementation", *header], rows)
