"""Efficient Sparsefinder on Brown: nats and visited blocks at the smallest block size."""

from replication.files.paths import ROOT
from replication.predictors.methods import BLOCK_METHODS
from replication.results.measurements import read_blocks
from replication.tables.markers import markdown


def blocks(run: str) -> str:
    """Return each method's nats at each K, with visited blocks in brackets; means over student seeds and clusters."""
    table = read_blocks(ROOT / "reported" / run / "masked_lm")
    size = table["block_size"].min()
    table = table[table["block_size"] == size]
    full = table[table["method"] == "full"].iloc[0]
    means = table[table["method"].isin(BLOCK_METHODS)].groupby(["method", "count"])[["nats", "attended"]].mean()
    counts = sorted(means.index.get_level_values("count").unique())
    rows = []
    for name, method in BLOCK_METHODS.items():
        cells = [means.loc[(name, count)] for count in counts]
        rows.append([method.label, *(f"{cell['nats']:.3f} ({cell['attended']:.1f})" for cell in cells)])
    full_row = ["full entmax", *[""] * (len(counts) - 1), f"{full['nats']:.3f} ({full['attended']:.0f})"]
    return markdown(
        [f"blocks of {size} tokens, nats (blocks visited)", *(f"K = {count}" for count in counts)], [*rows, full_row]
    )
