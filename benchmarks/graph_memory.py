"""Peak memory of writing the graphs of 2 and of 12 layers, and of fitting and sweeping on them. It must not grow.

Run: python benchmarks/graph_memory.py
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread

import torch

from replication.files.provenance import hardware
from replication.graphs.grids import expand
from replication.graphs.shards import open_graphs, writing_graphs
from replication.graphs.sweep import sweep_layer
from sparselib.projections import fit_projection

SEQUENCES, HEADS, LENGTH, DIMENSION = 64, 8, 256, 64
METHODS = {
    "distance": {"predictor": "Distance", "threshold": [0.5, 1.0]},
    "bins": {"predictor": "Quantization", "bins": 8},
}


def write_layers(folder: Path, layers: int) -> None:
    """Write random graphs, a batch at a time."""
    paths = [folder / f"layer{layer:02}.safetensors" for layer in range(layers)]
    lengths = torch.full((8,), LENGTH)
    with writing_graphs(paths, torch.arange(SEQUENCES), HEADS, LENGTH, DIMENSION, causal=False) as writer:
        for start in range(0, SEQUENCES, 8):
            for layer in range(layers):
                writer.write(layer, start, *torch.randn(2, 8, HEADS, LENGTH, DIMENSION), lengths)


def use_layers(folder: Path, layers: int) -> None:
    """Fit a projection and run the recall sweep on each layer."""
    for layer in range(layers):
        with open_graphs(folder / f"layer{layer:02}.safetensors") as graphs:
            projection, _ = fit_projection(graphs, dimension=4, batch_size=8)
            sweep_layer(graphs, {0: (projection, {})}, expand(METHODS), [0, 3, 11], "first_last")


STAGES = {"write": write_layers, "use": use_layers}


def mebibytes(field: str) -> float:
    """Return a line of this process's status. The ru_maxrss of getrusage would include the parent's peak."""
    return int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) / 1024


def watch_anonymous(peak: list[float]) -> None:
    """Sample the anonymous pages, because Linux records only the peak of all resident pages."""
    while True:
        peak[0] = max(peak[0], mebibytes("RssAnon"))
        time.sleep(0.01)


def run_stage(stage: str, folder: str, layers: str) -> None:
    """Run a stage and print this process's peak memory in MiB, of all pages and of anonymous pages."""
    anonymous = [0.0]
    Thread(target=watch_anonymous, args=(anonymous,), daemon=True).start()
    STAGES[stage](Path(folder), int(layers))
    print(mebibytes("VmHWM"), anonymous[0])


def main() -> None:
    print(f"{hardware()}, torch {torch.__version__}; peak of all resident memory (anonymous memory)")
    for layers in (2, 12):
        with tempfile.TemporaryDirectory() as folder:
            peaks = []
            for stage in STAGES:
                command = [sys.executable, __file__, stage, folder, str(layers)]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                peaks.append("{:4.0f} MiB ({:3.0f})".format(*map(float, output.split())))
            size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
        print(f"{layers:3} layers, {size:4.0f} MiB of graphs: write {peaks[0]}, fit and sweep {peaks[1]}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_stage(*sys.argv[1:])
    else:
        main()
