"""A guarantee on the model's output: one path of settings for all heads, from dense to sparse, tested as one family.

The tuning half of the text fixes the path: at each step, every head has its sparsest setting that reaches the step's recall
there. The calibration half then tests the steps in this order, up to the first that is not certified (Learn then Test with a
fixed sequence, see :mod:`sparselib.huggingface.guarantee`). So whatever the losses of the steps are, the probability that the
last certified one has an expected loss above the risk is at most ``1 - confidence``, for the whole model at once.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sparselib.control import LayerCall
from sparselib.huggingface.guarantee import certified
from sparselib.huggingface.halves import Half
from sparselib.huggingface.heads import Setting
from sparselib.huggingface.layers import Inputs, Layer, Measured
from sparselib.huggingface.report import OutputReport, Step
from sparselib.huggingface.sparsified import Sparsified
from sparselib.huggingface.tuning import LEAST_SPARSITY, Orders
from sparselib.masks import visible_pairs
from sparselib.masks.visible import causal_and_lengths

#: From the outputs of the unrestricted and of the restricted model for a batch to losses ``[B]`` in 0..1.
OutputLoss = Callable[[object, object, Inputs], Tensor]
#: Every head's recall on the tuning half, step by step.
TARGETS = (0.999, 0.995, 0.99, 0.98, 0.97, 0.96, 0.95, 0.93, 0.9, 0.875, 0.85, 0.8, 0.7, 0.6, 0.5)
#: Shares of the edges that thresholds miss on the tuning half, a little fewer than the targets, because the mean over sequences
#: of what a threshold misses may be above its share of all edges.
PATH_MISSED = tuple(0.9 * (1 - target) for target in TARGETS)

#: A recall target, and for each layer the setting of every head.
PathStep = tuple[float, list[list[Setting]]]


def path_of(measured: Sequence[Measured], orders: Orders, half: Half) -> list[PathStep]:
    """Return the steps from dense to sparse: each head's sparsest settings that reach the targets on this half.

    Steps at which no head's setting changes are left out.
    """
    steps: list[PathStep] = []
    previous = dense_settings(orders)
    for target in TARGETS:
        settings = [
            _sparsest(layer, layer_orders, half, target) if layer_orders else []
            for layer, layer_orders in zip(measured, orders, strict=True)
        ]
        if settings != previous:
            steps.append((target, settings))
            previous = settings
    return steps


def dense_settings(orders: Orders) -> list[list[Setting]]:
    """Return each layer's and head's first setting, with all pairs."""
    return [[order[0] for order in layer] for layer in orders]


def _sparsest(measured: Measured, orders: list[list[Setting]], half: Half, target: float) -> list[Setting]:
    """Return the sparsest setting of each of a layer's heads whose mean recall is at least the target."""
    losses = half.per_group(measured.losses).mean(-1)
    densities = measured.densities.mean(-1).masked_fill(losses > 1 - target, torch.inf)
    found = zip(orders, *densities.min(0), strict=True)
    return [order[int(place) if 1 - density >= LEAST_SPARSITY else 0] for order, density, place in found]


def certify_path(
    steps: Sequence[PathStep],
    restricted: Callable[[list[list[Setting]]], Sparsified],
    layers: Sequence[Layer],
    half: Half,
    loss: OutputLoss,
    risk: float,
    confidence: float,
    grouped: bool,
) -> OutputReport:
    """Test steps in their order up to the first that is not certified; `restricted` returns the model at a step."""
    tested, binary = [], True
    for target, settings in steps:
        losses, sparsity = compare_outputs(restricted(settings), layers, half.batches, loss)
        binary &= bool(((losses == 0) | (losses == 1)).all())
        by_group = half.per_group(losses)
        tested.append(Step(target, by_group.mean().item(), sparsity, bool(certified(by_group, risk, confidence))))
        if not tested[-1].certified:
            break
    return OutputReport(name_of(loss), risk, confidence, binary, grouped, tested)


@torch.no_grad()
def compare_outputs(
    sparse: Sparsified, layers: Sequence[Layer], batches: Sequence[Inputs], loss: OutputLoss
) -> tuple[Tensor, float]:
    """Return each sequence's loss ``[N]`` between the unrestricted and the restricted model, and the share of pairs left out.

    The share is over the layers that can be sparsified.
    Both are run on each batch, because the outputs of all batches may not fit into memory.
    """
    losses, kept, pairs = [], 0, 0

    def count(call: LayerCall, mask: Tensor) -> None:
        nonlocal kept, pairs
        if not layers[call.layer].left_dense:
            causal, lengths = causal_and_lengths(call.visible)
            real = visible_pairs(len(call.q), call.q.shape[2], call.k.shape[2], lengths, causal, call.q.device)
            kept += int((mask & real).sum())
            pairs += int(real.sum()) * call.q.shape[1]

    for inputs in batches:
        inputs = {name: x.to(sparse.model.device) for name, x in inputs.items()}
        dense = sparse.model(**inputs)
        with sparse, sparse.control.observing(count):
            output = sparse.model(**inputs)
        losses.append(_checked(loss(dense, output, inputs), max(len(x) for x in inputs.values()), name_of(loss)))
    return torch.cat(losses), 1 - kept / pairs


def name_of(loss: OutputLoss) -> str:
    """Return a loss function's name as words, or ``the output`` for a function without a name."""
    name = getattr(loss, "__name__", "<lambda>")
    return "the output" if name == "<lambda>" else name.replace("_", " ").strip()


def _checked(losses: object, sequences: int, name: str) -> Tensor:
    """Return losses in double precision; raise ``ValueError`` unless there is one from 0 to 1 for each sequence."""
    if not isinstance(losses, Tensor) or losses.shape != (sequences,):
        got = list(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise ValueError(f"`loss` must return a Tensor [{sequences}], one number per sequence, got {got} of {name}")
    losses = losses.detach().cpu().double()
    if wrong := losses[~((losses >= 0) & (losses <= 1))].tolist():
        raise ValueError(f"`loss` must return numbers from 0 to 1, got {wrong[0]} of {name}")
    return losses
