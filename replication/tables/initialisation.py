"""Effect of a model's initialisation on each method's recall above the window."""

from pathlib import Path

import pandas as pd

from replication.claims.band import Band
from replication.claims.curves import Curves, above
from replication.claims.masked_lm import recall_curves
from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.methods import METHODS
from replication.tables.markers import markdown

#: Initial query and key weights of runs with the same corpus and length.
#: The pretrained encoder is larger and has subwords of its own; the others have the same sizes and training.
RUNS = {
    "brown-512": "equal",
    "brown-512-seed1": "equal, a second model",
    "brown-512-untied": "independent",
    "brown-512-untied-seed1": "independent, a second model",
    "brown-512-minilm": "pretrained",
    "brown-512-minilm-seed1": "pretrained, a second model",
}
BAND = Band.parse("gold - 0.10")


def initialisation() -> str:
    """Return a row for perplexity, the gold sparsity and each method's recall above the window near that sparsity."""
    folders = {run: ROOT / "reported" / run / "masked_lm" for run in RUNS}
    compared = {run: recall_curves(folder) for run, folder in folders.items()}
    gained = {run: above(curves, "window", BAND) for run, curves in compared.items()}
    rows = [
        ["perplexity, held out", *(f"{_perplexity(folder):.1f}" for folder in folders.values())],
        ["gold sparsity", *(f"{curves.gold:.3f}" for curves in compared.values())],
    ]
    for name, method in METHODS.items():
        if name != "window" and any(name in curves.fronts for curves in compared.values()):
            cells = [_cell(gained[run], compared[run], name) for run in RUNS]
            rows.append([f"{method.label}: recall above the window", *cells])
    return markdown(["query and key weights start", *RUNS.values()], rows)


def _perplexity(folder: Path) -> float:
    table = read_table(folder / "perplexity.csv").query("corpus == 'held-out'").set_index("model")["perplexity"]
    return float(table[table.index.str.startswith("entmax ")].item())


def _cell(gained: pd.DataFrame, curves: Curves, method: str) -> str:
    """Format the mean and deviation over student seeds, or the end of the method's grid if it is below the band."""
    if method not in gained.index:
        return f"ends at {curves.reach(method):.3f}"
    return f"{gained.loc[method, 'mean']:+.1f} ± {gained.loc[method, 'std']:.1f}"
