"""Attended keys and timing runs of a translator's normalisers, on teacher-forced sentences."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from replication.translation.model import Translator

Key = TypeVar("Key")


@dataclass(frozen=True)
class Scores:
    """Attention scores of one layer.

    Attributes
    ----------
    place : str
        ``"encoder"``, ``"decoder"`` or ``"cross"``.
    layer : int
        Number of the layer.
    values : Tensor ``[B, H, Q, K]``
        Scores, -inf for masked pairs.
    tokens : Bool Tensor ``[B, Q]``
        False for padded queries.
    """

    place: str
    layer: int
    values: Tensor
    tokens: Tensor


@torch.no_grad()
def scores_of(translator: Translator, sample: dict) -> list[Scores]:
    """Return the scores of all layers in all three places for a batch of pairs, teacher-forced."""
    pad, inputs = translator.dictionary.pad(), sample["net_input"]
    source, target = (inputs[side] != pad for side in ("src_tokens", "prev_output_tokens"))
    all_scores: list[Scores] = []
    with ExitStack() as stack:
        for place, control in translator.model.attention_controls.items():

            def observe(call, mask, place=place):
                values = (call.q @ call.k.mT * call.q.shape[-1] ** -0.5).masked_fill(~mask, -torch.inf)
                all_scores.append(Scores(place, call.layer, values, source if place == "encoder" else target))

            stack.enter_context(control.observing(observe))
        translator.model(**inputs)
    return all_scores


def attended(translator: Translator, split: str, batch: int) -> float:
    """Return the mean number of keys with nonzero weight, over the tokens of a split, heads, layers and places."""
    keys = rows = 0
    for sample in _batches(translator, split, batch):
        for scores in scores_of(translator, sample):
            with torch.no_grad():
                weights = _normalizer(translator, scores)(scores.values)
            keys += int(((weights > 0).sum(-1) * scores.tokens[:, None]).sum())
            rows += int(scores.tokens.sum()) * weights.shape[1]
    return keys / rows


def normalizer_runs(
    translators: Mapping[Key, Translator], scored_by: Translator, split: str, batch: int
) -> dict[Key, Callable[[], None]]:
    """Return, per translator, a function that runs its normalisers forward and backward on the same scores.

    Parameters
    ----------
    translators : mapping
        Translators by key.
    scored_by : Translator
        Translator that computes the scores of all layers, for the batch of median length.
    split : str
        Split of the data.
    batch : int
        Sentences per batch.

    Returns
    -------
    dict of callable
        Functions by the keys of ``translators``.
    """
    samples = list(_batches(scored_by, split, batch))
    all_scores = scores_of(scored_by, samples[len(samples) // 2])
    generator = torch.Generator().manual_seed(0)
    upstream = [torch.randn(scores.values.shape, generator=generator).to(scores.values.device) for scores in all_scores]

    def both_ways(translator: Translator) -> Callable[[], None]:
        def run() -> None:
            for scores, gradient in zip(all_scores, upstream, strict=True):
                normalizer, values = _normalizer(translator, scores), scores.values.detach().requires_grad_()
                learned = list(normalizer.parameters()) if isinstance(normalizer, nn.Module) else []
                torch.autograd.grad(normalizer(values), [values, *learned], gradient)

        return run

    return {key: both_ways(translator) for key, translator in translators.items()}


def _normalizer(translator: Translator, scores: Scores) -> Callable[[Tensor], Tensor]:
    return translator.model.attention_controls[scores.place].normalizer_of(scores.layer)


def _batches(translator: Translator, split: str, batch: int) -> Iterator[dict]:
    dataset = translator.dataset(split)
    return translator.batches(dataset, list(range(len(dataset))), sentences=batch)
