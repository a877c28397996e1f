"""Sparse Transformers' claims about its factorised patterns, computed from the masks in any run."""

from pathlib import Path

import numpy as np

from replication.claims.finding import Finding, Test, registering
from replication.claims.scores import plain
from replication.files.reading import read_table

TESTS: dict[str, Test] = {}
_claim = registering(TESTS)


@_claim("fac-reach")
def fac_reach(folder: Path) -> Finding:
    """Use interleaved parts, one per layer, as in the paper's argument about paths."""
    table = read_table(folder / "reach.csv").query("heads == 'interleaved'")
    return Finding(
        [
            plain(f"{pattern}, positions on the longest path", rows["path"].max(), f"n up to {rows['n'].max()}")
            for pattern, rows in table.groupby("pattern")
        ]
    )


@_claim("fac-edges")
def fac_edges(folder: Path) -> Finding:
    """Fit the exponent e of keys ~ n^e to all lengths."""
    table = read_table(folder / "reach.csv")
    return Finding(
        [
            plain(
                f"{pattern}, {heads}", np.polyfit(np.log(rows["n"]), np.log(rows["keys"]), 1)[0], f"{len(rows)} lengths"
            )
            for (pattern, heads), rows in table.groupby(["pattern", "heads"])
        ]
    )


@_claim("fac-combining-heads")
def fac_combining_heads(folder: Path) -> Finding:
    table = read_table(folder / "reach.csv")
    return Finding(
        [
            plain(f"{pattern}, {heads}", 100 * rows["reached"].min(), f"n up to {rows['n'].max()}")
            for (pattern, heads), rows in table.groupby(["pattern", "heads"])
        ]
    )
