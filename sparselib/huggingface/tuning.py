"""Each head's settings: learned, measured and chosen on one half of the text, and calibrated on the other."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import torch
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedModel

from sparselib.control import AttentionControl
from sparselib.huggingface.gold import GoldRule
from sparselib.huggingface.guarantee import last_certified
from sparselib.huggingface.halves import Half
from sparselib.huggingface.heads import Setting, block_settings, own_settings, settings
from sparselib.huggingface.layers import Inputs, Layer, Measured, NeededEdges, observed_layers
from sparselib.huggingface.learning import Sample
from sparselib.huggingface.report import HeadReport
from sparselib.predictors import Predictor
from sparselib.projections import Projection

#: Heads whose sparsity would be lower stay dense.
LEAST_SPARSITY = 0.1

#: For each layer and head, settings in the order of testing.
Orders = list[list[list[Setting]]]
#: A caller's predictor of all layers, or a function that fits one to a layer's batches, its projection and a seed.
OwnPredictor = Predictor | Callable[[Iterable[NeededEdges], Projection, int], Predictor]


class Run:
    """A model with the layers and the gold rule under which it is observed."""

    def __init__(self, model: PreTrainedModel, control: AttentionControl, layers: list[Layer], rule: GoldRule):
        self.model, self.control, self.layers, self.rule = model, control, layers, rule

    def observed(self, batches: Sequence[Inputs], name: str) -> Iterator[list[NeededEdges | None]]:
        """Yield each batch's layers, with a progress bar."""
        progress = tqdm(batches, desc=name, leave=False)
        return observed_layers(self.model, self.control, self.layers, self.rule, progress)

    def measured(self, batches: Sequence[Inputs], name: str, orders: Orders) -> list[Measured]:
        """Return each layer's losses and densities, for all settings of all heads."""
        measured = [Measured() for _ in self.layers]
        for observed in self.observed(batches, name):
            for number, batch in enumerate(observed):
                if batch is not None:
                    measured[number].add(self.layers[number], batch, orders[number])
        return measured


class LayerBatches:
    """One layer's batches with gold edges. The model runs anew for each pass over them, so that they need no memory."""

    def __init__(self, run: Run, inputs: Sequence[Inputs], layer: int):
        self.run, self.inputs, self.layer = run, inputs, layer

    def __iter__(self) -> Iterator[NeededEdges]:
        for observed in self.run.observed(self.inputs, f"layer {self.layer}"):
            if observed[self.layer] is not None:
                yield observed[self.layer]


def is_predictor(value: object) -> bool:
    """Return whether a value has the interface of :class:`sparselib.predictors.Predictor`."""
    return hasattr(value, "needs") and callable(getattr(value, "predict", None))


def made_for(layer: Layer, own: OwnPredictor, batches: LayerBatches, seed: int) -> Predictor:
    """Return a caller's predictor for one layer, fitted if it is made by a function.

    Raise ``ValueError`` if that function returns anything else, or if the predictor needs a decoder's prefix.
    """
    predictor = own if is_predictor(own) else own(batches, layer.projection, seed)
    if not is_predictor(predictor):
        raise ValueError(f"`predictors` must be or return predictors, got {type(predictor).__name__} of {own!r:.80}")
    if layer.causal and predictor.needs.prefix:
        raise ValueError(
            f"`predictors` must decide each pair alone in a decoder, but {type(predictor).__name__} needs the whole prefix"
        )
    return predictor


def learn(
    run: Run,
    first: Sequence[Inputs],
    sequences: int,
    families: Collection[str],
    window: int,
    seed: int,
    missed: Sequence[float],
    own: Sequence[OwnPredictor] = (),
) -> Orders:
    """Learn clusters of every layer, and thresholds that miss shares of the edges; return each head's settings by family."""
    samples = [Sample(sequences, seed) for _ in run.layers]
    for observed in run.observed(first, "clusters"):
        for layer, sample, batch in zip(run.layers, samples, observed, strict=True):
            if batch is not None:
                sample.add(layer, batch)
    orders: Orders = []
    for number, (layer, sample) in enumerate(zip(run.layers, samples, strict=True)):
        orders.append([])
        if not layer.left_dense:
            batches = LayerBatches(run, first, number)
            made = own_settings([made_for(layer, one, batches, seed) for one in own], window)
            layer.centroids = sample.centroids(seed) if "kmeans" in families else {}
            for thresholds in sample.thresholds(missed):
                by_family = [settings(family, window, thresholds, list(layer.centroids)) for family in families]
                orders[-1].append([*(setting for of_family in by_family for setting in of_family), *made])
    return orders


def block_orders(model: PreTrainedModel, layers: list[Layer], block: int) -> Orders:
    """Return each head's settings that predict blocks; raise ``ValueError`` for a decoder."""
    if any(layer.causal for layer in layers):
        raise ValueError(
            f"`predictors` must not be blocks for {type(model).__name__}, a decoder, because a block's vector depends on later "
            'tokens; use ("kmeans", "window")'
        )
    heads = (0 if layer.projection is None else len(layer.projection.weight) for layer in layers)
    return [[block_settings(block)] * count for count in heads]


def choose(measured: list[Measured], orders: Orders, half: Half, recall: float, confidence: float) -> Orders:
    """Return, for each head, the settings of the family that would be the sparsest if this half calibrated it."""
    chosen: Orders = []
    for layer_measured, layer_orders in zip(measured, orders, strict=True):
        chosen.append([])
        for head, order in enumerate(layer_orders):
            losses = half.per_group(layer_measured.losses[:, head])
            density = layer_measured.densities[:, head].mean(-1)
            best, least = [], torch.inf
            # Every family begins with a dense setting.
            starts = [index for index, setting in enumerate(order) if setting.family == "dense"]
            for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
                # Denser settings first: this half fixes the order in which the other half tests a family.
                indices = sorted(
                    range(start, end), key=lambda index: (order[index].family != "dense", -density[index].item())
                )
                last = int(last_certified(losses[indices], 1 - recall, confidence))
                family_density = density[indices[max(last, 0)]].item()
                if family_density < least:
                    best, least = [order[index] for index in indices], family_density
            chosen[-1].append(best)
    longest = max((len(order) for layer_orders in chosen for order in layer_orders), default=0)
    # Repeating the last setting changes no test, and allows measuring all heads at once.
    return [[[*order, *[order[-1]] * (longest - len(order))] for order in layer_orders] for layer_orders in chosen]


def calibrate(
    measured: list[Measured], orders: Orders, layers: list[Layer], half: Half, recall: float, confidence: float
) -> list[HeadReport]:
    """Choose every head's final setting, and return its results on this half."""
    reports = []
    for number, (layer_measured, layer_orders, layer) in enumerate(zip(measured, orders, layers, strict=True)):
        if layer.left_dense:
            continue
        losses, densities = half.per_group(layer_measured.losses), layer_measured.densities.mean(-1)
        last: Tensor = last_certified(losses, 1 - recall, confidence).clamp_min(0)
        places = last.masked_fill(1 - densities.gather(0, last[None])[0] < LEAST_SPARSITY, 0).tolist()
        layer.chosen = [order[place] for order, place in zip(layer_orders, places, strict=True)]
        reports += head_reports(number, layer, losses.mean(-1), densities, places, recall)
    return reports


def head_reports(
    number: int, layer: Layer, losses: Tensor, densities: Tensor, places: Sequence[int], bound: float
) -> list[HeadReport]:
    """Return the results of a layer's heads from losses and densities ``[S, H]`` at the places of their settings."""
    found = enumerate(zip(layer.chosen, places, strict=True))
    return [
        HeadReport(
            number,
            head,
            str(setting),
            1 - losses[place, head].item(),
            1.0 if setting.family == "dense" else bound,
            1 - densities[place, head].item(),
        )
        for head, (setting, place) in found
    ]
