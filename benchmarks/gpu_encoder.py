"""Time the default's encoder on a GPU under entmax and under PyTorch's softmax; print a JSON row per setting.

python benchmarks/gpu_encoder.py [--seconds 60] > benchmarks/results/gpu_encoder.jsonl

The encoder is all-MiniLM-L6-v2, fine-tuned under 1.5-entmax with the adapters of checkpoints/, without its vocabulary head, in
bfloat16. All read Python's documentation, 32,768 tokens per batch, and positions beyond 512 repeat. *entmax* is our kernel,
*entmax, weights* the form that keeps all weights in memory. Without CUDA, the script prints one line and exits with status 2.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from functools import partial

import torch
from attention_peers import TOKENS
from cpu_encoder import RUN, encoders
from gpu_clock import timed
from hardware import hardware
from pretrained import minilm
from torch import Tensor
from transformers import PreTrainedModel

from sparselib import entmax15
from sparselib.huggingface import use_attention

LENGTHS = (512, 2048, 8192)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="start no setting after this many seconds")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("benchmarks/gpu_encoder.py needs a CUDA device, and none is available")
        sys.exit(2)
    deadline = time.monotonic() + arguments.seconds
    print(json.dumps(hardware()), flush=True)
    models = {name: model.cuda().to(torch.bfloat16) for name, model in encoders().items()}
    for n in LENGTHS:
        for row in at_length(n, models):
            print(json.dumps(row), flush=True)
            if time.monotonic() > deadline:
                print(json.dumps({"stopped_early": True}))
                return


def at_length(n: int, models: dict[str, PreTrainedModel]) -> Iterator[dict]:
    """Yield the times of both passes at one length, and the relative difference of our output from the form with weights."""
    ids = minilm()[1][:TOKENS].view(-1, n).cuda()
    outputs = {}
    for name in ("SDPA", "entmax", "entmax, weights"):
        model = models[name.split(",")[0]]
        if name != "SDPA":
            use_attention(model, with_weights if "weights" in name else entmax15)
        for part, run in RUN.items():
            row = {"n": n, "batch": len(ids), "attention": name, "part": part}
            yield row | timed(partial(run, model, ids), captured=False)
        outputs[name] = hidden(model, ids[:1])
    error = (outputs["entmax"] - outputs["entmax, weights"]).norm() / outputs["entmax, weights"].norm()
    yield {"n": n, "part": "difference", "relative": error.item()}


def with_weights(scores: Tensor) -> Tensor:
    """Return 1.5-entmax from a function that no kernel stands for, so that all weights are kept."""
    return entmax15(scores)


def hidden(model: PreTrainedModel, ids: Tensor) -> Tensor:
    """Return the last hidden states in single precision."""
    with torch.no_grad():
        return model(ids).last_hidden_state.float()


if __name__ == "__main__":
    main()
