"""Time of the recall sweep over one layer (12 heads, n = 512): the whole published MLM grid against its single predictors.

"Single member" is one predictor of the grid with all windows, timed separately with the same code, including the gold graph.
"Window by window" is the same predictor with a mask built and counted for each window.

Run: python benchmarks/recall_sweep.py
"""

import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
import yaml

from replication.files.paths import ROOT
from replication.files.provenance import hardware
from replication.graphs.centroids import fit_layer
from replication.graphs.grids import Member, expand
from replication.graphs.shards import LayerGraphs, open_graphs, writing_graphs
from replication.graphs.sweep import sweep_layer
from sparselib import metrics
from sparselib.masks.combine import combine
from sparselib.projections import Projection

HEADS, LENGTH, DIMENSION, SEQUENCES = 12, 512, 64, 2


def random_layer(path: Path) -> None:
    """Write queries and keys with some structure (tokens of a topic are similar), about 97 % sparse."""
    generator = torch.Generator().manual_seed(0)
    shape = (SEQUENCES, HEADS, LENGTH, DIMENSION)
    topics = torch.randn(HEADS, 16, DIMENSION, generator=generator)
    topic = topics[:, torch.randint(16, (SEQUENCES, LENGTH), generator=generator)].transpose(0, 1)
    q, k = (1.2 * topic + torch.randn(shape, generator=generator) for _ in range(2))
    with writing_graphs([path], torch.arange(SEQUENCES), HEADS, LENGTH, DIMENSION, causal=False) as writer:
        writer.write(0, 0, q, k, torch.full((SEQUENCES,), LENGTH))


def timed(function, *args, rounds: int = 3) -> float:
    """Return the median time of a call after one warm-up call."""
    function(*args)
    times = []
    for _ in range(rounds):
        start = perf_counter()
        function(*args)
        times.append(perf_counter() - start)
    return median(times)


def window_by_window(graphs: LayerGraphs, projection: Projection, centroids: dict, member: Member, windows: list[int]):
    """Build and evaluate a mask for each window of a predictor."""
    predictor = member.build(centroids, 0)
    for batch in graphs.batches(1):
        gold = batch.gold
        predicted = predictor.predict(projection(batch.q), projection(batch.k))
        for window in windows:
            mask = combine(predicted, window, "first_last")
            for measure in (metrics.recall, metrics.precision, metrics.exact_fraction):
                measure(mask, gold)
            metrics.sparsity(mask)


def main() -> None:
    settings = yaml.safe_load((ROOT / "config" / "paper.yaml").read_text())["masked_lm"]
    members, windows = expand(settings["methods"]), settings["windows"]
    print(f"{hardware()}, torch {torch.__version__}, {torch.get_num_threads()} threads; {HEADS} heads, n = {LENGTH}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer00.safetensors"
        random_layer(path)
        with open_graphs(path) as graphs:
            projection = Projection(torch.randn(HEADS, DIMENSION, 4) * DIMENSION**-0.5, torch.zeros(HEADS, 4))
            centroids = fit_layer(graphs, projection, settings["methods"], 2000, seed=0)

            def sweep(chosen: list[Member]) -> None:
                sweep_layer(graphs, {0: (projection, centroids)}, chosen, windows, "first_last")

            grid = timed(sweep, members)
            single = {f"{m.method} {m.setting}": timed(sweep, [m]) for m in members}
            families: dict[str, float] = {}
            for method in dict.fromkeys(m.method for m in members):
                families[method] = timed(sweep, [m for m in members if m.method == method])
            slowest_by_window = max(
                timed(window_by_window, graphs, projection, centroids, m, windows, rounds=1)
                for m in {m.method: m for m in members}.values()
            )
    for title, times in (("single members", single), ("families", families)):
        print(f"\n{title}, ms per sentence, most expensive first")
        for name, value in sorted(times.items(), key=lambda item: -item[1])[:8]:
            print(f"  {1e3 * value / SEQUENCES:9.1f}  {name}")
    print(
        f"\nwhole grid, {len(members)} members x {len(windows)} windows: {1e3 * grid / SEQUENCES:.1f} ms per sentence"
    )
    print(f"  / most expensive single member, all windows in one pass: {grid / max(single.values()):.2f}")
    print(f"  / most expensive family:                                 {grid / max(families.values()):.2f}")
    print(f"  / most expensive single member, window by window:        {grid / slowest_by_window:.2f}")


if __name__ == "__main__":
    main()
