"""Tuning every head of a model to a recall target: learn and choose on one half of the text, calibrate on the other."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import torch
from torch import Tensor
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from sparselib.checks import one_of
from sparselib.control import AttentionControl
from sparselib.huggingface.attention import undone_by_an_error, use_attention
from sparselib.huggingface.gold import GoldRule, gold_rule
from sparselib.huggingface.guarantee import last_certified, sequences_needed
from sparselib.huggingface.heads import FAMILIES, Setting, settings
from sparselib.huggingface.layers import Inputs, Layer, Measured, NeededEdges, shown
from sparselib.huggingface.learning import Sample, learn_projections
from sparselib.huggingface.probe import undisturbed
from sparselib.huggingface.report import HeadReport, Report, drift_of
from sparselib.huggingface.sparsified import Sparsified
from sparselib.normalizers import Entmax

#: A head that keeps more of its pairs than this stays dense.
LEAST_SPARSITY = 0.1


def sparsify(
    model: PreTrainedModel,
    batches: Iterable[Inputs],
    *,
    gold: str = "mass:0.95",
    recall: float = 0.95,
    confidence: float = 0.9,
    predictors: Collection[str] = FAMILIES,
    dimension: int = 4,
    window: int = 3,
    alpha: float = 1.0,
    seed: int = 0,
) -> Sparsified:
    """Tune every head to find ``recall`` of the keys that it needs, and no more pairs than it takes.

    On the first half of the batches, projections, thresholds and clusters are learned, and each head gets the family of
    predictors that is the sparsest at the target. On the second half, its settings are tested from the densest on
    (:mod:`sparselib.huggingface.guarantee`): with a probability of ``confidence`` or more, for each head, its expected recall
    on further sequences of the same kind is at least ``recall``. That is of the model's own queries and keys; those of a model
    that is already restricted below differ, and the report says how far its outputs drift.

    Parameters
    ----------
    batches : what the model takes, each a mapping of tensors, in random order
        All of them are kept, and read several times. Attention masks are honoured.
    gold : which keys a head needs
        ``"entmax:1.5"`` (a weight that is not 0), ``"mass:0.95"`` (the fewest with that weight of softmax) or ``"top:8"``.
    predictors : of ``"distance"``, ``"kmeans"`` and ``"window"``
    dimension : size of the projected space
    window : total width of the window that every prediction is united with
    alpha : of the model's normaliser; 1 is softmax, which softmax models keep

    Raises ``ValueError``, and leaves the model as it was, for a model that is refused or has no self-attention to sparsify, no
    batches, numbers outside (0, 1), an unknown rule or predictor, and fewer sequences than the confidence needs.

    >>> from transformers import RobertaConfig, RobertaModel
    >>> tiny = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 99}
    >>> model = RobertaModel(RobertaConfig(**tiny)).eval()
    >>> batches = [{"input_ids": torch.randint(5, 99, (4, 12))} for _ in range(4)]
    >>> sparse = sparsify(model, batches, recall=0.5, confidence=0.5)
    >>> len(sparse.report.heads)
    2
    >>> with sparse:
    ...     output = model(**batches[0])
    """
    rule = gold_rule(gold)
    for name, value in (("recall", recall), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must be between 0 and 1, got {value}")
    if not predictors:
        raise ValueError(f"predictors: there is none, of {', '.join(FAMILIES)}")
    for family in predictors:
        one_of("predictors", family, FAMILIES)
    batches = list(batches)
    first, second = _halves(batches, 1 - recall, confidence)
    with undone_by_an_error(model), undisturbed(model):
        control = use_attention(model, Entmax(alpha), batches[0])
        layers = [Layer() for _ in range(control.layers)]
        run = _Run(model, control, layers, rule)
        sequences = learn_projections(run.over(first, "projections"), layers, dimension, seed)
        if not sequences:
            reasons = {layer.left_dense for layer in layers}
            raise ValueError(f"{type(model).__name__} has no attention to sparsify: {'; '.join(sorted(reasons))}")
        orders = _learn(run, first, sequences, predictors, window, seed, 1 - recall)
        chosen = _choose(run.measured(first, "choice", orders), orders, recall, confidence)
        rows = _calibrate(run.measured(second, "calibration", chosen), chosen, layers, recall, confidence)
        sparse = Sparsified(model, control, layers, Report(rows, gold, recall, confidence), alpha)
        sparse.report.drift = drift_of(model, sparse, second)
    return sparse


def _halves(batches: Sequence[Inputs], allowed: float, confidence: float) -> tuple[Sequence[Inputs], Sequence[Inputs]]:
    """The first and the second half. Raises ``ValueError`` if there are too few sequences for the confidence."""
    if not len(batches):
        raise ValueError("batches: there is none to learn from")
    needed = sequences_needed(allowed, confidence)
    middle = len(batches) // 2
    of_second = sum(len(next(iter(inputs.values()))) for inputs in batches[middle:])
    if middle == 0 or of_second < needed:
        raise ValueError(
            f"batches: {of_second} sequences are left to calibrate with; a recall of {1 - allowed:.4g} with confidence"
            f" {confidence} needs at least {needed} in the second half, in two batches or more"
        )
    return batches[:middle], batches[middle:]


#: For each layer and head, settings in the order in which they are tested.
Orders = list[list[list[Setting]]]


class _Run:
    """A model whose layers are looked at."""

    def __init__(self, model: PreTrainedModel, control: AttentionControl, layers: list[Layer], rule: GoldRule):
        self.model, self.control, self.layers, self.rule = model, control, layers, rule

    def over(self, batches: Sequence[Inputs], name: str) -> Iterator[list[NeededEdges | None]]:
        """What the layers do, batch by batch; a bar shows the progress."""
        return shown(self.model, self.control, self.layers, self.rule, tqdm(batches, desc=name, leave=False))

    def measured(self, batches: Sequence[Inputs], name: str, orders: Orders) -> list[Measured]:
        """What all settings of all heads miss and keep, layer by layer."""
        found = [Measured() for _ in self.layers]
        for seen in self.over(batches, name):
            for number, batch in enumerate(seen):
                if batch is not None:
                    found[number].add(self.layers[number], batch, orders[number])
        return found


def _learn(
    run: _Run,
    first: Sequence[Inputs],
    sequences: int,
    families: Collection[str],
    window: int,
    seed: int,
    allowed: float,
) -> Orders:
    """Thresholds and clusters of every layer; the settings of each head, those of all families one after the other."""
    samples = [Sample(sequences, seed) for _ in run.layers]
    for seen in run.over(first, "clusters"):
        for layer, sample, batch in zip(run.layers, samples, seen, strict=True):
            if batch is not None:
                sample.see(layer, batch)
    orders: Orders = []
    for layer, sample in zip(run.layers, samples, strict=True):
        orders.append([])
        if not layer.left_dense:
            layer.centroids = sample.centroids(seed) if "kmeans" in families else {}
            for thresholds in sample.thresholds(allowed):
                of_head = [settings(family, window, thresholds, list(layer.centroids)) for family in families]
                orders[-1].append([one for of_family in of_head for one in of_family])
    return orders


def _choose(measured: list[Measured], orders: Orders, recall: float, confidence: float) -> Orders:
    """For each head, the settings of the family that would be the sparsest if this half were that of calibration."""
    chosen: Orders = []
    for of_layer, order in zip(measured, orders, strict=True):
        chosen.append([])
        for head, of_head in enumerate(order):
            losses, density = of_layer.losses[:, head], of_layer.densities[:, head].mean(-1)
            best, least = [], torch.inf
            for places in _families(of_head):
                # Denser settings first: the order of a family is that of this half.
                places = sorted(places, key=lambda place: (of_head[place].family != "dense", -density[place].item()))
                last = int(last_certified(losses[places], 1 - recall, confidence))
                kept = density[places[max(last, 0)]].item()
                if kept < least:
                    best, least = [of_head[place] for place in places], kept
            chosen[-1].append(best)
    longest = max((len(one) for layer in chosen for one in layer), default=0)
    # Repeating the last setting changes no test, and lets all heads be measured at once.
    return [[[*one, *[one[-1]] * (longest - len(one))] for one in layer] for layer in chosen]


def _families(order: list[Setting]) -> list[list[int]]:
    """Places of the settings of each family: every family begins with a dense one."""
    starts = [place for place, one in enumerate(order) if one.family == "dense"]
    return [list(range(start, end)) for start, end in zip(starts, [*starts[1:], len(order)], strict=True)]


def _calibrate(
    measured: list[Measured], orders: Orders, layers: list[Layer], recall: float, confidence: float
) -> list[HeadReport]:
    """The setting of every head, and what it did on this half."""
    rows = []
    for number, (of_layer, order, layer) in enumerate(zip(measured, orders, layers, strict=True)):
        if layer.left_dense:
            continue
        losses, densities = of_layer.losses, of_layer.densities.mean(-1)
        last: Tensor = last_certified(losses, 1 - recall, confidence).clamp_min(0)
        for head, place in enumerate(last.tolist()):
            sparsity = 1 - densities[place, head].item()
            if sparsity < LEAST_SPARSITY:
                place = 0
            layer.chosen.append(order[head][place])
            rows.append(
                HeadReport(
                    number,
                    head,
                    str(layer.chosen[-1]),
                    1 - losses[place, head].mean().item(),
                    1.0 if place == 0 else recall,
                    1 - densities[place, head].item(),
                )
            )
    return rows
