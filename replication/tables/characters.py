"""Table 3 of Extremely Sparse Transformer on War and Peace, with the paper's numbers for enwik8."""

import math

from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.results import CHARACTER_MODELS, read_characters
from replication.tables.markers import markdown

FOLDER = ROOT / "reported" / "war-and-peace-512" / "char_lm"
PUBLISHED = {
    "block": "Transformer block",
    "transformer-xl": "Transformer-XL",
    "transformer-xl-top-k": "Transformer-XL + Top-k",
    "adaptive-span": "Adaptive span",
    "adaptive-span-top-8": "Adaptive span + Top-k",
}


def table3() -> str:
    """Return each model's bits per character with their spread, attended positions and span, as means over seeds."""
    paper = read_table(ROOT / "config" / "published" / "extremely_sparse_table3.csv").set_index("model")
    measured = read_characters(FOLDER, "measured.csv")
    rows = []
    for model, runs in measured.groupby("model", sort=False):
        mean = runs[["bits_per_character", "attended_positions", "mean_span", "top_k"]].mean()
        name = CHARACTER_MODELS[model].replace("Top-k", "" if math.isnan(mean["top_k"]) else f"Top-{mean['top_k']:.0f}")
        span = "" if math.isnan(mean["mean_span"]) else f"{mean['mean_span']:.1f}"
        printed = ""
        if model in PUBLISHED:
            line = paper.loc[PUBLISHED[model]]
            printed = f"{line['enwik8_bpc']} at {line['enwik8_positions']}"
        bits = f"{mean['bits_per_character']:.3f} ± {runs['bits_per_character'].std():.3f}"
        rows.append([name, bits, f"{mean['attended_positions']:.1f}", span, printed])
    header = [f"test, {measured['seed'].nunique()} seeds", "bits per character", "attended positions", "mean span"]
    return markdown([*header, "the paper, enwik8"], rows)


def baselines() -> str:
    """Return the n-grams' bits per character on the same text."""
    table = read_table(FOLDER / "war-and-peace" / "baselines.csv")
    return markdown(
        ["n-grams", "bits per character", "characters"],
        [[row.model, f"{row.bits_per_character:.3f}", f"{row.characters:,}"] for row in table.itertuples()],
    )
