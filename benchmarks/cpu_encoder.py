"""Time the default's encoder on a CPU under entmax and under PyTorch's softmax, and measure the peak memory of both.

python benchmarks/cpu_encoder.py [--rounds 7] [--threads 1 2] [--note TEXT] > benchmarks/results/cpu_encoder.json

The encoder is all-MiniLM-L6-v2, fine-tuned under 1.5-entmax with the adapters of checkpoints/, without its vocabulary head.
Both have the same weights and read Python's documentation. They take turns in each round, and the first round is not counted.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import torch
from cpu_peers import machine, timed
from graph_memory import mebibytes
from pretrained import minilm, repeat_positions
from safetensors.numpy import load_file, save_file
from torch import Tensor
from transformers import AutoModel, PreTrainedModel

from replication.files.checkpoints import MADE_BY, WEIGHTS
from replication.files.paths import ROOT
from replication.masked_lm.adapters import merge_adapters
from sparselib import attention
from sparselib.control import LayerCall
from sparselib.huggingface import use_attention

LENGTHS = (512, 2048)
#: Tokens of a batch.
TOKENS = 4096
CHECKPOINT = ROOT / "checkpoints" / "masked_lm" / "model"
PASSES = ("forward", "both passes")
ATTENTIONS = ("entmax", "SDPA")
#: Maps each block of 128 KiB or more by itself, see mallopt(3); without it, the threshold grows.
LARGE_BLOCKS = {"MALLOC_MMAP_THRESHOLD_": "131072"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds after the first (default: 7)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--note", default="", help="what else used the machine, for the report")
    parser.add_argument("--memory", nargs=3, metavar=("ATTENTION", "PASS", "N"), help="print one peak, in MiB")
    arguments = parser.parse_args()
    if arguments.memory:
        name, part, n = arguments.memory
        print(peak(encoders()[name], part, int(n)))
        return
    models, rows = encoders(), []
    share, difference = comparison(models)
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        for n in LENGTHS:
            for part in PASSES:
                runs = {name: partial(RUN[part], model, batch(n)) for name, model in models.items()}
                rows += timed(f"encoder, {part}", n, runs, arguments.rounds)
    memory = [
        {"part": f"encoder, {part}", "n": n, "attention": name, "mebibytes": child_peak(name, part, n)}
        for n in LENGTHS
        for part in PASSES
        for name in ATTENTIONS
    ]
    report = {"machine": machine(), "rounds": arguments.rounds, "note": arguments.note, "support": share}
    print(json.dumps(report | {"difference": difference, "rows": rows, "memory": memory}, indent=1))


def encoders() -> dict[str, PreTrainedModel]:
    """Return the fine-tuned encoder under entmax, and with PyTorch's attention instead."""
    tensors = load_file(CHECKPOINT / WEIGHTS)
    with tempfile.TemporaryDirectory() as folder:
        adapters = Path(folder, "adapters.safetensors")
        header = json.loads((CHECKPOINT / MADE_BY).read_text())["header"]
        save_file({name: x.astype("float32") for name, x in tensors.items()}, adapters, header)
        merge_adapters(adapters, Path(folder))
        load = partial(AutoModel.from_pretrained, folder, add_pooling_layer=False, attn_implementation="sdpa")
        models = {name: repeat_positions(load()).eval() for name in ATTENTIONS}
    use_attention(models["entmax"])
    return models


def batch(n: int) -> Tensor:
    """Return ids ``[B, n]`` of Python's documentation."""
    return minilm()[1][:TOKENS].view(-1, n)


def comparison(models: dict[str, PreTrainedModel]) -> tuple[float, float]:
    """Return the mean share of the keys with weight, and the largest difference from the form that keeps all weights."""
    control, shares = use_attention(models["entmax"]), []

    def observe(call: LayerCall, mask: Tensor) -> None:
        weights = attention(call.q, call.k, call.k, scale=call.scoring.scale)[1]
        shares.append((weights > 0).double().mean().item())

    ids = batch(LENGTHS[0])[:1]
    with torch.no_grad(), control.observing(observe):
        output = models["entmax"](ids).last_hidden_state
    with torch.no_grad():
        dense = models["entmax"](ids, output_attentions=True).last_hidden_state
    return sum(shares) / len(shares), (output - dense).abs().max().item()


def forward(model: PreTrainedModel, ids: Tensor) -> None:
    with torch.no_grad():
        model(ids)


def both_passes(model: PreTrainedModel, ids: Tensor) -> None:
    model(ids).last_hidden_state.square().mean().backward()
    model.zero_grad(set_to_none=True)


RUN: dict[str, Callable] = dict(zip(PASSES, (forward, both_passes), strict=True))


def peak(model: PreTrainedModel, part: str, n: int) -> float:
    """Return by how many MiB a call raises this process's peak of resident memory above what is resident before it."""
    ids = batch(n)
    RUN[part](model, ids[:1, :64])
    ctypes.CDLL(None).malloc_trim(0)  # returns freed memory, which the call would use first
    before = mebibytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    RUN[part](model, ids)
    return mebibytes("VmHWM") - before


def child_peak(*setting: object) -> float:
    """Return the median :func:`peak` of three new processes, which no earlier call left memory.

    Each large block is mapped by itself and given back when it is freed. By default, glibc keeps freed blocks in a heap,
    whose holes make peaks of equal processes differ by a quarter.
    """
    command = [sys.executable, __file__, "--memory", *map(str, setting)]
    run = partial(subprocess.run, command, env=os.environ | LARGE_BLOCKS, check=True, capture_output=True, text=True)
    outputs = [run().stdout for _ in range(3)]
    return median(float(output.splitlines()[-1]) for output in outputs)


if __name__ == "__main__":
    main()
