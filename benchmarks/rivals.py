"""Rules by which others choose what to attend to, on the attention graphs of a finished run: recall against sparsity.

Every rule is on the raw queries and keys of the same held-out sequences, with its block, page or window as published rules have
them, over a grid of its budget; the gate learned from the training graphs. Sparsefinder's points are those of the run's own
sweep, windows and global tokens included. Printed: each point, and the sparsity of each front at a recall of 0.95.

Run: python benchmarks/rivals.py [results/demo]
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from replication.graphs.shards import LayerGraphs, open_graphs
from replication.paths import ROOT
from replication.results import over_heads, read_sweep
from replication.rivals import Gate, Quest, StreamingLLM, VerticalSlash, XAttention, fit_gate
from sparselib import metrics, pareto_front
from sparselib.predictors import Predictor, TopK

BLOCK, TARGET = 16, 0.95
COUNTS = (1, 2, 4, 8, 12, 16, 24)
RULES: dict[str, list[Predictor]] = {
    "top-k, an oracle": [TopK(k) for k in (4, 8, 16, 32, 64, 128)],
    "StreamingLLM": [StreamingLLM(4, window) for window in (4, 8, 16, 32, 64, 128, 256)],
    "Quest": [Quest(BLOCK, count) for count in COUNTS],
    "XAttention": [XAttention(mass, BLOCK, 4) for mass in (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)],
    "vertical-slash": [VerticalSlash(count, count) for count in (4, 8, 16, 32, 64, 128)],
}


def measured(graphs: LayerGraphs, rules: dict[str, list[Predictor]]) -> pd.DataFrame:
    """A row per rule, budget and head: means over the sequences of one layer."""
    rows = []
    for batch in graphs.batches(1):
        gold = batch.gold
        for rule, grid in rules.items():
            for budget, predictor in enumerate(grid):
                predicted = predictor.predict(batch.q, batch.k, lengths=batch.lengths, causal=batch.causal)
                found = metrics.recall(predicted, gold)[0].tolist(), metrics.sparsity(predicted)[0].tolist()
                rows += [(rule, budget, head, *of_head) for head, of_head in enumerate(zip(*found, strict=True))]
    table = pd.DataFrame(rows, columns=["rule", "budget", "head", "recall", "sparsity"])
    return table.groupby(["rule", "budget", "head"], as_index=False, sort=False).mean()


def learned(graphs: LayerGraphs) -> list[Gate]:
    """The gate of one layer at every budget."""
    batches = graphs.batches(4)
    gate = fit_gate(batches, block=BLOCK, count=1, dimension=16, epochs=3, learning_rate=0.01, seed=0)
    return [Gate(gate.of_queries, gate.of_keys, BLOCK, count) for count in COUNTS]


def sparsity_at(points: pd.DataFrame, recall: float) -> float:
    """Of the front, interpolated; NaN where it does not reach so far."""
    front = points.iloc[pareto_front(points["sparsity"], points["recall"])].sort_values("recall")
    return float(np.interp(recall, front["recall"], front["sparsity"], left=np.nan, right=np.nan))


def main(results: Path) -> None:
    folder = results / "masked_lm"
    tables = []
    for path in tqdm(sorted((folder / "graphs" / "valid").glob("layer*.safetensors"))):
        with open_graphs(path) as graphs, open_graphs(folder / "graphs" / "train" / path.name) as training:
            tables.append(measured(graphs, RULES | {"a learned gate": learned(training)}).assign(layer=path.stem))
    rivals = pd.concat(tables).groupby(["rule", "budget"], as_index=False, sort=False)[["recall", "sparsity"]].mean()
    own = over_heads(read_sweep(folder)).groupby(["method", "setting", "window"], as_index=False)[
        ["recall", "sparsity"]
    ]
    points = pd.concat([rivals, own.mean().rename(columns={"method": "rule"})])
    print(rivals.round(3).to_string(index=False))
    at_target = points.groupby("rule", sort=False).apply(
        lambda of_rule: sparsity_at(of_rule, TARGET), include_groups=False
    )
    print(f"\nSparsity at a recall of {TARGET}, means over heads:")
    print(at_target.sort_values(ascending=False).round(3).to_string())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results" / "demo")
