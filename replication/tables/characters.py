"""Table 3 of Extremely Sparse Transformer on War and Peace, beside what the paper prints for enwik8."""

import math

from replication.paths import ROOT
from replication.reading import read_table
from replication.results import CHARACTER_MODELS, read_characters
from replication.tables.markers import markdown

FOLDER = ROOT / "reported" / "war-and-peace" / "char_lm"
PUBLISHED = {
    "block": "Transformer block",
    "transformer-xl": "Transformer-XL",
    "transformer-xl-top-k": "Transformer-XL + Top-k",
    "adaptive-span": "Adaptive span",
    "adaptive-span-top-8": "Adaptive span + Top-k",
}


def table3() -> str:
    """Bits per character, attended positions and the mean span of each model."""
    paper = read_table(ROOT / "config" / "published" / "extremely_sparse_table3.csv").set_index("model")
    header = ["test, one seed", "bits per character", "attended positions", "mean span", "the paper, enwik8"]
    rows = []
    for row in read_characters(FOLDER, "measured.csv").itertuples():
        name = CHARACTER_MODELS[row.model].replace("Top-k", "" if math.isnan(row.top_k) else f"Top-{row.top_k:.0f}")
        span = "" if math.isnan(row.mean_span) else f"{row.mean_span:.1f}"
        printed = ""
        if row.model in PUBLISHED:
            line = paper.loc[PUBLISHED[row.model]]
            printed = f"{line['enwik8_bpc']} at {line['enwik8_positions']}"
        rows.append([name, f"{row.bits_per_character:.3f}", f"{row.attended_positions:.1f}", span, printed])
    return markdown(header, rows)


def baselines() -> str:
    """Bits per character of n-grams on the same text."""
    table = read_table(FOLDER / "war-and-peace" / "baselines.csv")
    return markdown(
        ["n-grams", "bits per character", "characters"],
        [[row.model, f"{row.bits_per_character:.3f}", f"{row.characters:,}"] for row in table.itertuples()],
    )
