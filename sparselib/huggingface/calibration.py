"""Sparsify a model at a guaranteed recall of every head, or at a guaranteed loss of its output."""

from collections.abc import Collection, Hashable, Iterable, Mapping

from transformers import PreTrainedModel

from sparselib.blocks.chunks import TOKENS, Chunks
from sparselib.checks import integer_at_least, one_of
from sparselib.huggingface.attention import use_attention
from sparselib.huggingface.checked_model import check_model, restored_on_error
from sparselib.huggingface.drift import drift_of
from sparselib.huggingface.gold import gold_rule
from sparselib.huggingface.halves import check_enough, split
from sparselib.huggingface.heads import BLOCKS, PAIRS, Setting
from sparselib.huggingface.layers import Inputs, Layer
from sparselib.huggingface.learning import MISSED, learn_projections
from sparselib.huggingface.output_guarantee import PATH_MISSED, OutputLoss, certify_path, dense_settings, path_of
from sparselib.huggingface.own_normalizer import normalizers, with_alpha
from sparselib.huggingface.probe import preserving_state
from sparselib.huggingface.report import Report
from sparselib.huggingface.sparsified import Sparsified
from sparselib.huggingface.tuning import (
    OwnPredictor,
    Run,
    block_orders,
    calibrate,
    choose,
    head_reports,
    is_predictor,
    learn,
)


def sparsify(
    model: PreTrainedModel,
    batches: Iterable[Inputs],
    *,
    groups: Iterable[Hashable] | None = None,
    loss: OutputLoss | None = None,
    risk: float = 0.1,
    gold: str = "mass:0.95",
    recall: float | None = None,
    confidence: float = 0.9,
    predictors: Collection[str | OwnPredictor] = PAIRS,
    block: int = 64,
    dimension: int = 4,
    window: int = 3,
    alpha: float | None = None,
    seed: int = 0,
    simultaneous: bool = False,
) -> Sparsified:
    """Restrict the attention of a model as far as a guarantee allows: one on its output, or one on each head's recall.

    With `loss`, the guarantee is on the output of the restricted model: with probability `confidence` or more, its expected
    loss on further sequences is at most `risk` (:mod:`sparselib.huggingface.output_guarantee`). The first half of the shuffled
    sequences builds one path from the dense to sparser models, and the second half tests the path's models in this order.
    Inside :meth:`Sparsified.to_blocks` it holds if `predictors` are blocks; with other predictors, more pairs attend there.

    Without `loss`, every head is tuned to a recall target at the highest sparsity:

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
    loss : callable, optional
        From the outputs of the unrestricted and of the restricted model for a batch, and the batch, to a Tensor of each
        sequence's loss, from 0 to 1. Its name is that of what changes, such as ``the_label``, in the report.
    risk : float
        Largest expected loss, in (0, 1), if there is a `loss`.
    gold : str
        The keys that a head needs: ``"entmax:1.5"`` (nonzero weight), ``"mass:0.95"`` (the fewest with that softmax weight) or
        ``"top:8"`` (the largest scores).
    recall : float, optional
        Target share of the needed keys, in (0, 1); by default 0.95. With `loss`, it follows from the risk.
    confidence : float
        Probability that the guarantee holds, in (0, 1).
    predictors : collection of str, Predictor and callable
        Families to choose from: ``"distance"``, ``"kmeans"`` and ``"window"``, which predict pairs of tokens; predictors of
        your own, of which those of one class are a family; and functions that fit one to a layer's batches with gold edges,
        its projection and a seed, such as ``partial(NearEnough.fit, recall=0.9)``. Or ``"blocks"`` alone: each query block of
        an encoder attends to a tuned share of the key blocks, its nearest ones (section 6.1). Then
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
        are fewer sequences or groups than the confidence needs, a number is outside (0, 1), a loss is outside of 0 to 1, or the
        gold rule or a family is unknown. The model is unchanged.

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

    >>> def the_direction(dense, output, batch):
    ...     return (torch.cosine_similarity(dense.pooler_output, output.pooler_output) < 0.99).float()
    >>> sparse = sparsify(model, batches, loss=the_direction, risk=0.5, confidence=0.5)
    >>> sparse.report.output.path[0].loss <= 1
    True
    """
    check_model(model)
    rule = gold_rule(gold)
    if loss is not None and (recall is not None or simultaneous):
        raise ValueError(
            "`recall` and `simultaneous` must be left out with `loss`, which guarantees the output instead"
        )
    if loss is not None and not callable(loss):
        raise ValueError(f"`loss` must be a function of both outputs and the batch, got {type(loss).__name__}")
    recall = 0.95 if recall is None else recall
    for name, value in (("recall", recall), ("risk", risk), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"`{name}` must be between 0 and 1, got {value}")
    if isinstance(predictors, str):
        raise ValueError(f"`predictors` must be a tuple of names, got {predictors!r}; pass ({predictors!r},)")
    if not predictors:
        raise ValueError(f"`predictors` must name at least one of {', '.join((*PAIRS, BLOCKS))}; got none")
    families = [entry for entry in predictors if isinstance(entry, str)]
    own = [entry for entry in predictors if not isinstance(entry, str)]
    for family in families:
        one_of("predictors", family, (*PAIRS, BLOCKS))
    for entry in own:
        if isinstance(entry, type) or not (is_predictor(entry) or callable(entry)):
            raise ValueError(f"`predictors` must be names, predictors or functions that fit one, got {entry!r:.80}")
    if BLOCKS in families and (own or set(families) != {BLOCKS}):
        raise ValueError(f"`predictors` must be blocks alone, or only pairs ({', '.join(PAIRS)}); got {predictors}")
    for name, number, least in (("block", block, 1), ("dimension", dimension, 1), ("window", window, 0)):
        integer_at_least(name, number, least)
    # NumPy's numbers could not be saved as JSON.
    block, dimension, window, seed = map(int, (block, dimension, window, seed))
    recall, risk, confidence = float(recall), float(risk), float(confidence)
    alphas = with_alpha(model, alpha)
    if isinstance(batches, str | Mapping):
        raise ValueError(f"`batches` must be an iterable of batches, got {type(batches).__name__}; pass a list of them")
    batches = list(batches)
    allowed, aim = (1 - recall, f"a recall of {recall:.4g}") if loss is None else (risk, f"a risk of {risk:.4g}")
    first, second = split(batches, groups, seed, allowed, confidence, aim)
    with restored_on_error(model), preserving_state(model):
        control = use_attention(model, normalizers(alphas), batches[0])
        layers = [Layer() for _ in range(control.layers)]
        run = Run(model, control, layers, rule)
        chunks = Chunks(block, "mean") if BLOCKS in families else TOKENS
        sequences = learn_projections(run.observed(first.batches, "projections"), layers, dimension, seed, chunks)
        if not sequences:
            reasons = {layer.left_dense for layer in layers}
            raise ValueError(f"{type(model).__name__} has no attention to sparsify: {'; '.join(sorted(reasons))}")
        level = confidence
        if simultaneous:
            heads = sum(0 if layer.projection is None else len(layer.projection.weight) for layer in layers)
            level = 1 - (1 - confidence) / heads
            check_enough(len(second.groups.unique()), allowed, level, groups is not None, aim)
        if BLOCKS in families:
            orders = block_orders(model, layers, block)
        else:
            missed = [allowed * share for share in MISSED] if loss is None else PATH_MISSED
            orders = learn(run, first.batches, sequences, families, window, seed, missed, own)
        measured = run.measured(first.batches, "choice", orders)
        report = Report([], gold, recall, confidence, simultaneous=bool(simultaneous))

        def restricted(settings: list[list[Setting]]) -> Sparsified:
            for layer, chosen in zip(layers, settings, strict=True):
                layer.chosen = list(chosen)
            return Sparsified(model, control, layers, report, alphas)

        if loss is None:
            chosen = choose(measured, orders, first, recall, level)
            report.heads = calibrate(
                run.measured(second.batches, "calibration", chosen), chosen, layers, second, recall, level
            )
        else:
            steps = path_of(measured, orders, first)
            report.output = certify_path(steps, restricted, layers, second, loss, risk, confidence, groups is not None)
            passed = sum(step.certified for step in report.output.path)
            restricted(steps[passed - 1][1] if passed else dense_settings(orders))
            report.recall = steps[passed - 1][0] if passed else 1.0
            chosen = [[[setting] for setting in layer.chosen] for layer in layers]
            found = run.measured(second.batches, "heads", chosen)
            for number, (layer, one) in enumerate(zip(layers, found, strict=True)):
                if not layer.left_dense:
                    losses = second.per_group(one.losses).mean(-1)
                    places = [0] * len(layer.chosen)
                    report.heads += head_reports(number, layer, losses, one.densities.mean(-1), places, 0.0)
        sparse = Sparsified(model, control, layers, report, alphas)
        report.drift = drift_of(model, sparse, second.batches)
    return sparse
