"""Peak memory of projection training and of the recall sweep over a model of 2 and of 12 layers: it must not grow.

Run: python benchmarks/graph_memory.py
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from sparselib.graphs import open_graphs, writing_graphs
from sparselib.grids import expand
from sparselib.projections import fit_projection
from sparselib.storage import hardware
from sparselib.sweep import sweep_layer

SEQUENCES, HEADS, LENGTH, DIMENSION = 64, 8, 256, 64
METHODS = {
    "distance": {"predictor": "Distance", "threshold": [0.5, 1.0]},
    "bins": {"predictor": "Quantization", "bins": 8},
}


def write_layers(folder: Path, layers: int) -> None:
    paths = [folder / f"layer{layer:02}.safetensors" for layer in range(layers)]
    lengths = torch.full((8,), LENGTH)
    with writing_graphs(paths, torch.arange(SEQUENCES), HEADS, LENGTH, DIMENSION, causal=False) as writer:
        for layer in range(layers):
            for start in range(0, SEQUENCES, 8):
                writer.write(layer, start, *torch.randn(2, 8, HEADS, LENGTH, DIMENSION), lengths)


def use_layers(folder: Path) -> None:
    for path in sorted(folder.glob("*.safetensors")):
        with open_graphs(path) as graphs:
            projection, _ = fit_projection(graphs, dimension=4, batch_size=8)
            sweep_layer(graphs, projection, {}, expand(METHODS), [0, 3, 11], "first_last", seed=0)


def main() -> None:
    print(f"{hardware()}, torch {torch.__version__}")
    for layers in (2, 12):
        with tempfile.TemporaryDirectory() as folder:
            write_layers(Path(folder), layers)
            size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
            peak = subprocess.run([sys.executable, __file__, folder], check=True, capture_output=True, text=True).stdout
            print(f"{layers:3} layers, {size:6.0f} MiB of graphs: peak memory {float(peak):6.0f} MiB")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        use_layers(Path(sys.argv[1]))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    else:
        main()
