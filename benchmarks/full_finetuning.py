"""Fine-tune the packaged encoder with entmax, by adapters and in full; print a JSON row per text, method and seed.

python benchmarks/full_finetuning.py NAME=FOLDER... [--seeds 0 1 2] > benchmarks/results/full_finetuning.jsonl

A folder is the ``masked_lm`` folder of a run, with its tokens and tokenizer; NAME stands for it in the rows. The settings are
those of config/demo.yaml. Trained in full, all weights change, at a tenth of the adapters' learning rate. A row has the
perplexity on held-out text, and the share of the keys with weight, a mean over layers, heads and queries of the first held-out
sequences. A training takes a quarter of an hour on a core.
"""

import argparse
import json
import sys
import tempfile
import time
from contextlib import redirect_stdout
from itertools import product
from math import exp
from pathlib import Path

import torch
import yaml
from torch import Tensor
from transformers import PreTrainedModel

from replication.corpora.tokens import load_tokenizer, read_tokens
from replication.files.paths import ROOT
from replication.masked_lm.evaluation import cross_entropy, read_masked_text
from replication.masked_lm.model import load_pretrained
from replication.masked_lm.training import train
from sparselib import attention
from sparselib.control import LayerCall
from sparselib.huggingface import use_attention

#: The learning rate of all weights, as a share of the adapters'.
FULL_RATE = 0.1
METHODS = ("adapters", "all weights")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="+", metavar="NAME=FOLDER", help="the masked_lm folder of a run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="default: 0 1 2")
    arguments = parser.parse_args()
    for seed, text, method in product(arguments.seeds, arguments.texts, METHODS):
        print(json.dumps(trained(*text.split("=", 1), method, seed)), flush=True)


def trained(name: str, folder: str, method: str, seed: int) -> dict:
    """Train once, and return the row of measurements."""
    section = yaml.safe_load((ROOT / "config" / "demo.yaml").read_text())["masked_lm"]
    model, training, evaluation = (dict(section[key]) for key in ("model", "training", "evaluation"))
    base, rank = model.pop("pretrained"), model.pop("adapter_rank")
    if method == "adapters":
        training |= {"adapter_rank": rank, "base": base}
    else:
        training["learning_rate"] *= FULL_RATE
    network = load_pretrained(base, seed, **model)
    tokenizer, files = load_tokenizer(Path(folder) / "tokenizer"), Path(folder) / "tokens"
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as output:
        ids = read_tokens(files / "train.safetensors")["input_ids"]
        with redirect_stdout(sys.stderr):  # the Trainer prints its log
            log = train(network, tokenizer, ids, output, seed=seed, **training)
    seconds = time.perf_counter() - began
    network.eval()
    text = read_masked_text(files / "valid.safetensors", tokenizer, evaluation | {"sequences": None})
    nats = cross_entropy(network, text, 8)
    return {
        "text": name,
        "method": method,
        "seed": seed,
        "parameters": sum(x.numel() for x in network.parameters()),
        "steps": max(entry["step"] for entry in log),
        "held_out_loss": min(entry["eval_loss"] for entry in log if "eval_loss" in entry),
        "nats": nats,
        "perplexity": exp(nats),
        "keys_with_weight": keys_with_weight(network, text.input_ids[: evaluation["sequences"]]),
        "seconds": seconds,
    }


@torch.no_grad()
def keys_with_weight(model: PreTrainedModel, input_ids: Tensor) -> float:
    """Return the mean share of the keys with weight."""
    shares = []

    def observe(call: LayerCall, mask: Tensor | None) -> None:
        weights = attention(call.q.float(), call.k.float(), call.k.float(), scale=call.scoring.scale)[1]
        shares.append((weights > 0).double().mean().item())

    with use_attention(model).observing(observe):
        model.base_model(input_ids.to(model.device))
    return sum(shares) / len(shares)


if __name__ == "__main__":
    main()
