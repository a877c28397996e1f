"""Comparisons that a profile asks for: rows of its run's ledger, which count in no table of the papers' claims."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd

from replication.claims.bleu import bleu_curves
from replication.claims.configuration import configuration
from replication.claims.finding import Test, of_every
from replication.claims.masked_lm import compared, nats_curves, recall_curves
from replication.config.grids import COMPARED

#: By task: the notebook that draws its curves.
NOTEBOOKS = {"masked_lm": "sparsefinder/fig04_tradeoff", "translation": "sparsefinder/fig02_translation"}
#: By score: its curves, and its unit.
SCORES = {
    "recall": (recall_curves, "points of recall"),
    "perplexity": (nats_curves, "nats"),
    "bleu": (lambda folder: bleu_curves(folder)[0], "BLEU"),
}


def comparisons(results: Path) -> Iterator[tuple[str, dict[str, object], Test]]:
    """Yield the task, the statement and the test of each comparison in a run's configuration.

    Parameters
    ----------
    results : Path
        Folder of the run. Without ``config.yaml`` it has no comparisons.
    """
    try:
        settings = configuration(results / "masked_lm")
    except FileNotFoundError:
        return
    for task, notebook in NOTEBOOKS.items():
        for row in (settings.get(task) or {}).get("compare") or ():
            method, against, of = row["method"], row["against"], row.get("of", "recall")
            read, unit = SCORES[of]
            test = partial(compared, read, method, against)
            claim = {
                "id": f"{COMPARED}{task}-{of}-{method}-{'-'.join(against)}",
                "paper": "This profile",
                "section": "",
                "statement": f"{of}, {task}: {method} is at least as good as {', '.join(against)}",
                "kind": "compared",
                "effect": "difference of the curves at each budget, against each",
                "unit": unit,
                "relation": ">=",
                "threshold": 0.0,
                "threshold_source": "the sign of the comparison",
                "budgets": "1, 2, 5 x gold",
                "budgets_reason": "those of the papers' comparisons",
                "premise": "",
                "notebook": notebook,
                "abstract": "",
            }
            yield task, claim, of_every(test, "*-*") if task == "translation" else test


def with_comparisons(claims: pd.DataFrame, results: Path) -> pd.DataFrame:
    """Return the papers' claims, followed by the comparisons of a run, with the same columns."""
    return pd.concat([claims, pd.DataFrame([claim for _, claim, _ in comparisons(results)])], ignore_index=True)
