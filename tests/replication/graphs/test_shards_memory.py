"""Graph files of any size are written and read without filling the memory; measured in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from replication.graphs.shards import writing_graphs

PEAK = """
import sys
from pathlib import Path
import torch
from replication.graphs.shards import open_graphs, writing_graphs

def peak():
    # Not getrusage's ru_maxrss: a process inherits that from the one that started it.
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024  # MiB
"""

MEASURE_BATCH = """
with open_graphs(sys.argv[1]) as graphs:
    graphs.batch(0, 1)  # whatever the first use loads
    before = peak()
    graphs.batch(2, 4).q.sum()
    one = peak()
    kept = list(graphs.batches(4))
    print(one - before, peak() - before)
"""

MEASURE_WALK = """
def walk(layers, sequences):
    paths = [Path(sys.argv[1]) / f"{layer}" for layer in range(layers)]
    with writing_graphs(paths, torch.arange(sequences), 4, 256, 256, causal=False) as writer:
        for layer in range(layers):
            for start in range(0, sequences, 4):
                writer.write(layer, start, *torch.ones(2, 4, 4, 256, 256), torch.full((4,), 256))
    written = peak()
    for path in paths:
        with open_graphs(path) as graphs:
            for batch in graphs.batches(4):
                batch.q.sum()
    return written, peak()

_, before = walk(1, 8)
written, read = walk(*map(int, sys.argv[2:]))
print(written - before, read - before)
"""

reads_peak = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="reads the peak memory from Linux's /proc"
)


def measured(script, *arguments) -> list[int]:
    command = [sys.executable, "-c", PEAK + script, *map(str, arguments)]
    return [int(x) for x in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()]


@reads_peak
def test_reading_a_batch_does_not_read_the_file(tmp_path):
    path = tmp_path / "large.safetensors"
    with writing_graphs([path], torch.arange(32), 4, 256, 256, causal=False) as writer:
        for start in range(0, 32, 4):
            writer.write(0, start, *(torch.ones(4, 4, 256, 256) for _ in "qk"), torch.full((4,), 256))
    size = path.stat().st_size / 2**20
    assert size > 64
    one, everything = measured(MEASURE_BATCH, path)
    assert one < size / 3
    assert everything > size * 2 / 3  # or the measurement measures nothing


@reads_peak
@pytest.mark.parametrize(("layers", "sequences"), [(8, 8), (1, 64)])
def test_memory_grows_neither_with_layers_nor_with_sequences(tmp_path, layers, sequences):
    """Writing and reading 128 MiB of graphs needs no more than 16 MiB of them do, but for half of the difference."""
    growth = measured(MEASURE_WALK, tmp_path, layers, sequences)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) > 128 * 2**20
    assert max(growth) < (128 - 16) / 2  # the allocator keeps some; all layers mapped at once took 149 MiB
