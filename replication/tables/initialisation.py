"""Effect of a model's initialisation on each method's recall with five times the gold graph's pairs."""

from pathlib import Path

from replication.claims.curves import Curves
from replication.claims.masked_lm import recall_curves
from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.predictors.methods import METHODS
from replication.tables.markers import markdown

#: Initial query and key weights of runs with the same corpus and length.
#: The pretrained encoder is larger and has subwords of its own; the others have the same sizes and training.
RUNS = {
    "brown-512": "equal",
    "brown-512-seed1": "equal, a second model",
    "brown-512-untied": "independent",
    "brown-512-untied-seed1": "independent, a second model",
    "brown-seed0": "pretrained",
    "brown-seed1": "pretrained, a second model",
}
BUDGET = "5 x gold"


def initialisation() -> str:
    """Return a row for perplexity, the gold sparsity and each method's recall at :data:`BUDGET`."""
    folders = {run: ROOT / "reported" / run / "masked_lm" for run in RUNS}
    compared = {run: recall_curves(folder) for run, folder in folders.items()}
    rows = [
        ["perplexity, held out", *(f"{_perplexity(folder):.1f}" for folder in folders.values())],
        ["gold sparsity", *(f"{1 - curves.gold:.3f}" for curves in compared.values())],
    ]
    for name, method in METHODS.items():
        if any(name in curves.methods for curves in compared.values()):
            rows.append([f"{method.label}: recall at {BUDGET}", *(_cell(curves, name) for curves in compared.values())])
    return markdown(["query and key weights start", *RUNS.values()], rows)


def _perplexity(folder: Path) -> float:
    table = read_table(folder / "perplexity.csv").query("corpus == 'held-out'").set_index("model")["perplexity"]
    return float(table[table.index.str.startswith("entmax ")].item())


def _cell(curves: Curves, method: str) -> str:
    """Format the mean and deviation over student seeds."""
    budget = curves.named(BUDGET)
    if method not in curves.methods or not curves.has(method, budget):
        return "not measured"
    recall = curves.at(method, budget)[0]
    return f"{recall.mean():.1f} ± {recall.std(ddof=1):.1f}"
