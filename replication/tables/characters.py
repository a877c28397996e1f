"""Table 3 of Extremely Sparse Transformer on stored runs, with the paper's numbers for enwik8."""

import math

from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.results.measurements import CHARACTER_MODELS, read_characters
from replication.tables.markers import markdown

PUBLISHED = {
    "block": "Transformer block",
    "transformer-xl": "Transformer-XL",
    "transformer-xl-top-k": "Transformer-XL + Top-k",
    "adaptive-span": "Adaptive span",
    "adaptive-span-top-8": "Adaptive span + Top-k",
}


def table3(run: str) -> str:
    """Return each model's bits per character with their spread, attended positions and span, as means over seeds."""
    paper = read_table(ROOT / "config" / "published" / "extremely_sparse_table3.csv").set_index("model")
    measured = read_characters(ROOT / "reported" / run / "char_lm", "measured.csv")
    rows = []
    for model, runs in measured.groupby("model", sort=False):
        mean = runs[["bits_per_character", "attended_positions", "mean_span", "top_k"]].mean()
        name = CHARACTER_MODELS[model].replace("Top-k", "" if math.isnan(mean["top_k"]) else f"Top-{mean['top_k']:.0f}")
        span = "" if math.isnan(mean["mean_span"]) else f"{mean['mean_span']:.1f}"
        printed = ""
        if model in PUBLISHED:
            line = paper.loc[PUBLISHED[model]]
            printed = f"{line['enwik8_bpc']} at {line['enwik8_positions']}"
        spread = f" ± {runs['bits_per_character'].std():.3f}" if len(runs) > 1 else ""
        bits = f"{mean['bits_per_character']:.3f}{spread}"
        rows.append([name, bits, f"{mean['attended_positions']:.1f}", span, printed])
    seeds = measured["seed"].nunique()
    header = [f"test, {seeds} seed{'s' * (seeds > 1)}", "bits per character", "attended positions", "mean span"]
    return markdown([*header, "the paper, enwik8"], rows)


def baselines(run: str, corpus: str) -> str:
    """Return the n-grams' bits per character on a run's text."""
    table = read_table(ROOT / "reported" / run / "char_lm" / corpus / "baselines.csv")
    return markdown(
        ["n-grams", "bits per character", "characters"],
        [[row.model, f"{row.bits_per_character:.3f}", f"{row.characters:,}"] for row in table.itertuples()],
    )
