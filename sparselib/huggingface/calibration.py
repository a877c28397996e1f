"""Tune every head of a model to a recall target: learn and choose on one half of the text, calibrate on the other."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedModel

from sparselib.blocks.chunks import TOKENS, Chunks
from sparselib.checks import integer_at_least, one_of
from sparselib.control import AttentionControl
from sparselib.huggingface.attention import use_attention
from sparselib.huggingface.checked_model import check_model, restored_on_error
from sparselib.huggingface.drift import drift_of
from sparselib.huggingface.gold import GoldRule, gold_rule
from sparselib.huggingface.guarantee import last_certified
from sparselib.huggingface.halves import Half, check_enough, split
from sparselib.huggingface.heads import BLOCKS, PAIRS, Setting, block_settings, settings
from sparselib.huggingface.layers import Inputs, Layer, Measured, NeededEdges, observed_layers
from sparselib.huggingface.learning import Sample, learn_projections
from sparselib.huggingface.own_normalizer import normalizers, with_alpha
from sparselib.huggingface.probe import preserving_state
from sparselib.huggingface.report import HeadReport, Report
from sparselib.huggingface.sparsified import Sparsified

#: Heads whose sparsity would be lower stay dense.
LEAST_SPARSITY = 0.1


def sparsify(
    model: PreTrainedModel,
    batches: Iterable[Inputs],
    *,
    groups: Iterable[Hashable] | None = None,
    gold: str = "mass:0.95",
    recall: float = 0.95,
    confidence: float = 0.9,
    predictors: Collection[str] = PAIRS,
    block: int = 64,
    dimension: int = 4,
    window: int = 3,
    alpha: float | None = None,
    seed: int = 0,
    simultaneous: bool = False,
) -> Sparsified:
    """Tune every head of a model to a recall target at the highest sparsity.

    The sequences are shuffled. The first half fits projections, thresholds and clusters, and chooses for each head the family
    of predictors that is the sparsest at the target. The second half tests the head's settings from dense to sparse
    (:mod:`sparselib.huggingface.guarantee`). For each head, with probability `confidence` or more, the expected recall on
    further sequences of the same kind is at least `recall`. This assumes that sequences are drawn independently. Sequences of
    one document are not: name their documents in `groups`. The guarantee then assumes independent documents, and holds for a
    further document's expected mean recall. It holds for the queries and keys of the unrestricted model, for one call: the best
    of several calls with other seeds or settings has no guarantee, unless a text of its own calibrates it. Restricting a layer
    changes the inputs of later ones, and the report gives the drift of the model's output.

    Parameters
    ----------
    model : PreTrainedModel
    batches : iterable of mappings of Tensors
        The model's inputs. All batches stay in memory and are read several times. Attention masks are respected.
    groups : iterable, optional
        The document of each sequence, in the order of the batches: any hashable value, equal for sequences that depend on each
        other. By default, sequences are independent.
    gold : str
        The keys that a head needs: ``"entmax:1.5"`` (nonzero weight), ``"mass:0.95"`` (the fewest with that softmax weight) or
        ``"top:8"`` (the largest scores).
    recall : float
        Target share of the needed keys, in (0, 1).
    confidence : float
        Probability that a head's bound holds, in (0, 1).
    predictors : collection of str
        Families to choose from: ``"distance"``, ``"kmeans"`` and ``"window"``, which predict pairs of tokens; or ``"blocks"``
        alone: each query block of an encoder attends to a tuned share of the key blocks, its nearest ones (section 6.1). Then
        :meth:`Sparsified.to_blocks` visits only these.
    block : int
        Tokens per block for ``"blocks"``.
    dimension : int
        Size of the projected space.
    window : int
        Total width of the window that is added to every prediction of pairs.
    alpha : float
        Alpha of the model's normaliser. By default it is the model's own: that of :func:`use_attention`, or else 1, softmax.
    simultaneous : bool
        Whether all heads' bounds hold together with probability `confidence`, instead of each bound by itself. Each of H heads
        is then tested at a confidence of ``1 - (1 - confidence) / H`` (Bonferroni), which needs more sequences.
    seed : int
        Seed of the shuffling, of the projections, of the points that are clustered and of the distances that set thresholds.

    Returns
    -------
    Sparsified
        Restricts the model inside a ``with`` block.

    Raises
    ------
    ValueError
        If the model is refused or has no self-attention to sparsify, `alpha` is not that of the model's own attention, there
        are fewer sequences or groups than the confidence needs, a number is outside (0, 1), or the gold rule or a family is
        unknown. The model is unchanged.

    Examples
    --------
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
    check_model(model)
    rule = gold_rule(gold)
    for name, value in (("recall", recall), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"`{name}` must be between 0 and 1, got {value}")
    if isinstance(predictors, str):
        raise ValueError(f"`predictors` must be a tuple of names, got {predictors!r}; pass ({predictors!r},)")
    if not predictors:
        raise ValueError(f"`predictors` must name at least one of {', '.join((*PAIRS, BLOCKS))}; got none")
    for family in predictors:
        one_of("predictors", family, (*PAIRS, BLOCKS))
    if BLOCKS in predictors and len(set(predictors)) > 1:
        raise ValueError(f"`predictors` must be blocks alone, or only pairs ({', '.join(PAIRS)}); got {predictors}")
    for name, number, least in (("block", block, 1), ("dimension", dimension, 1), ("window", window, 0)):
        integer_at_least(name, number, least)
    # NumPy's numbers could not be saved as JSON.
    block, dimension, window, seed = map(int, (block, dimension, window, seed))
    recall, confidence = float(recall), float(confidence)
    alphas = with_alpha(model, alpha)
    if isinstance(batches, str | Mapping):
        raise ValueError(f"`batches` must be an iterable of batches, got {type(batches).__name__}; pass a list of them")
    batches = list(batches)
    first, second = split(batches, groups, seed, 1 - recall, confidence)
    with restored_on_error(model), preserving_state(model):
        control = use_attention(model, normalizers(alphas), batches[0])
        layers = [Layer() for _ in range(control.layers)]
        run = _Run(model, control, layers, rule)
        chunks = Chunks(block, "mean") if BLOCKS in predictors else TOKENS
        sequences = learn_projections(run.observed(first.batches, "projections"), layers, dimension, seed, chunks)
        if not sequences:
            reasons = {layer.left_dense for layer in layers}
            raise ValueError(f"{type(model).__name__} has no attention to sparsify: {'; '.join(sorted(reasons))}")
        level = confidence
        if simultaneous:
            heads = sum(0 if layer.projection is None else len(layer.projection.weight) for layer in layers)
            level = 1 - (1 - confidence) / heads
            check_enough(len(second.groups.unique()), 1 - recall, level, groups is not None)
        if BLOCKS in predictors:
            orders = _block_orders(model, layers, block)
        else:
            orders = _learn(run, first.batches, sequences, predictors, window, seed, 1 - recall)
        chosen = _choose(run.measured(first.batches, "choice", orders), orders, first, recall, level)
        measured = run.measured(second.batches, "calibration", chosen)
        heads = _calibrate(measured, chosen, layers, second, recall, level)
        sparse = Sparsified(
            model, control, layers, Report(heads, gold, recall, confidence, simultaneous=bool(simultaneous)), alphas
        )
        sparse.report.drift = drift_of(model, sparse, second.batches)
    return sparse


#: For each layer and head, settings in the order of testing.
Orders = list[list[list[Setting]]]


class _Run:
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


def _learn(
    run: _Run,
    first: Sequence[Inputs],
    sequences: int,
    families: Collection[str],
    window: int,
    seed: int,
    allowed: float,
) -> Orders:
    """Learn thresholds and clusters of every layer, and return each head's settings, family by family."""
    samples = [Sample(sequences, seed) for _ in run.layers]
    for observed in run.observed(first, "clusters"):
        for layer, sample, batch in zip(run.layers, samples, observed, strict=True):
            if batch is not None:
                sample.add(layer, batch)
    orders: Orders = []
    for layer, sample in zip(run.layers, samples, strict=True):
        orders.append([])
        if not layer.left_dense:
            layer.centroids = sample.centroids(seed) if "kmeans" in families else {}
            for thresholds in sample.thresholds(allowed):
                by_family = [settings(family, window, thresholds, list(layer.centroids)) for family in families]
                orders[-1].append([setting for family_settings in by_family for setting in family_settings])
    return orders


def _block_orders(model: PreTrainedModel, layers: list[Layer], block: int) -> Orders:
    """Return each head's settings that predict blocks; raise ``ValueError`` for a decoder."""
    if any(layer.causal for layer in layers):
        raise ValueError(
            f"`predictors` must not be blocks for {type(model).__name__}, a decoder, because a block's vector depends on later "
            'tokens; use ("kmeans", "window")'
        )
    heads = (0 if layer.projection is None else len(layer.projection.weight) for layer in layers)
    return [[block_settings(block)] * count for count in heads]


def _choose(measured: list[Measured], orders: Orders, half: Half, recall: float, confidence: float) -> Orders:
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


def _calibrate(
    measured: list[Measured], orders: Orders, layers: list[Layer], half: Half, recall: float, confidence: float
) -> list[HeadReport]:
    """Choose every head's final setting, and return its results on this half."""
    reports = []
    for number, (layer_measured, layer_orders, layer) in enumerate(zip(measured, orders, layers, strict=True)):
        if layer.left_dense:
            continue
        losses, densities = half.per_group(layer_measured.losses), layer_measured.densities.mean(-1)
        last: Tensor = last_certified(losses, 1 - recall, confidence).clamp_min(0)
        for head, index in enumerate(last.tolist()):
            sparsity = 1 - densities[index, head].item()
            if sparsity < LEAST_SPARSITY:
                index = 0
            layer.chosen.append(layer_orders[head][index])
            reports.append(
                HeadReport(
                    number,
                    head,
                    str(layer.chosen[-1]),
                    1 - losses[index, head].mean().item(),
                    1.0 if index == 0 else recall,
                    1 - densities[index, head].item(),
                )
            )
    return reports
