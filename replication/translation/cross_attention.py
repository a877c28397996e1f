"""Word-level cross-attention of a translator: its concentration, and its agreement with word alignments.

A target word's row is the row that predicts its first piece.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from replication.translation.model import Translator
from sparselib.control import LayerCall
from sparselib.dense_attention import attention_weights

CONTINUED = "@@"
#: Fewest target words of the map chosen for display.
ENOUGH_WORDS = 8


@dataclass(frozen=True)
class WordMap:
    """Weights ``[layers, H, T, S]`` from T target words to S source words; the last source word is the end mark."""

    source: list[str]
    target: list[str]
    weights: Tensor


def word_map(pieces: tuple[list[str], list[str]], weights: Tensor) -> WordMap:
    """Convert weights between pieces to weights between words.

    The weights of a source word's pieces are summed.

    Parameters
    ----------
    pieces : tuple of list of str
        Source and target pieces, without end marks.
    weights : Tensor ``[layers, H, target pieces + 1, source pieces + 1]``
        Weights, including the end marks.
    """
    (source, columns), (target, rows) = (_words(side) for side in pieces)
    columns = torch.tensor([*columns, len(source)])
    summed = weights.new_zeros(*weights.shape[:-1], len(source) + 1).index_add(-1, columns, weights)
    first = [rows.index(word) for word in range(len(target))]
    return WordMap([*source, "</s>"], target, summed[:, :, first])


def _words(pieces: list[str]) -> tuple[list[str], list[int]]:
    """Return the words, and the word number of each piece."""
    words, numbers, start = [], [], True
    for piece in pieces:
        part = piece.removesuffix(CONTINUED)
        if start:
            words.append(part)
        else:
            words[-1] += part
        numbers.append(len(words) - 1)
        start = not piece.endswith(CONTINUED)
    return words, numbers


@torch.no_grad()
def word_maps(
    translator: Translator, split: str, count: int, batch_tokens: int
) -> Iterator[tuple[int, WordMap, Tensor]]:
    """Yield number, word map and piece weights ``[layers, H, T, S]`` of the first pairs, teacher-forced, longest last."""
    dataset, padding = translator.dataset(split), translator.dictionary.pad()
    control = translator.model.attention_controls["cross"]
    for sample in translator.batches(dataset, list(range(count)), batch_tokens):
        layers: list[Tensor] = []

        def keep(call: LayerCall, mask: Tensor, layers=layers) -> None:
            layers.append(attention_weights(call.q, call.k, mask, normalizer=control.normalizer_of(call.layer)))

        with control.observing(keep):
            translator.model(**sample["net_input"])
        weights = torch.stack(layers, dim=1)
        for row, number in enumerate(sample["id"].tolist()):
            pair = dataset[number]
            # Sources are padded on the left.
            real = sample["net_input"]["src_tokens"][row] != padding
            pair_weights = weights[row][:, :, : len(pair["target"])][..., real]
            pieces = tuple(
                [translator.dictionary[token] for token in pair[side][:-1].tolist()] for side in ("source", "target")
            )
            yield number, word_map(pieces, pair_weights), pair_weights


def describe(
    translator: Translator, split: str, count: int, alignments: list[list[tuple[int, int]]] | None, batch_tokens: int
) -> tuple[pd.DataFrame, tuple[int, WordMap]]:
    """Measure the cross-attention of each decoder layer, and select one map for display.

    Parameters
    ----------
    translator : Translator
        The model and its data.
    split : str
        Split of the data.
    count : int
        Pairs of the split that are read, from the first one on.
    alignments : list of list of tuple, optional
        For each of these pairs, aligned word numbers (source, target).
    batch_tokens : int
        Tokens per batch.

    Returns
    -------
    table : DataFrame
        A row per layer, with means over heads. ``entropy`` (bits), ``entropy_of_8`` (entropy of the eight largest weights),
        ``attended`` (nonzero weights) and ``on_the_end`` (weight of the source's end mark) are means over all target pieces.
        ``aligned_mass`` is the weight from an aligned target word to its counterparts. ``aligned_words`` is the share of these
        words whose largest weight, averaged over heads, is on a counterpart. Both are NaN without ``alignments``.
    map : tuple of int and WordMap
        Number and map of the first shortest pair with at least :data:`ENOUGH_WORDS` words.

    Raises
    ------
    ValueError
        If the numbers of alignments and pairs differ.
    """
    if alignments is not None and len(alignments) != count:
        raise ValueError(f"`alignments` must have one entry per pair of {split} ({count}), got {len(alignments)}")
    entropy, top_8, nonzero, end, rows, mass, hits, words = 0.0, 0.0, 0.0, 0.0, 0, 0.0, 0.0, 0
    displayed: tuple[int, WordMap] | None = None
    for number, words_of_pair, weights in word_maps(translator, split, count, batch_tokens):
        if displayed is None or _preference(number, words_of_pair) < _preference(*displayed):
            displayed = number, words_of_pair
        entropy = entropy + _bits(weights)
        largest = weights.topk(min(8, weights.shape[-1])).values
        top_8 = top_8 + _bits(largest / largest.sum(-1, keepdim=True))
        nonzero = nonzero + (weights > 0).sum(-1).double().mean(1).sum(1)
        end = end + weights[..., -1].mean(1).sum(1)
        rows += weights.shape[2]
        if alignments is not None:
            gold = torch.zeros(
                len(words_of_pair.target), len(words_of_pair.source), dtype=torch.bool, device=weights.device
            )
            for source, target in alignments[number]:
                gold[target, source] = True
            linked = gold.any(-1)
            mean = words_of_pair.weights.mean(1)
            mass = mass + (mean * gold).sum((1, 2))
            hits = hits + (gold & (mean == mean.amax(-1, keepdim=True))).any(-1).sum(1)
            words += int(linked.sum())
    layers = translator.decoder.layers
    undefined = torch.full((layers,), torch.nan)
    table = {"layer": range(layers), "entropy": entropy / rows, "entropy_of_8": top_8 / rows}
    table |= {"attended": nonzero / rows, "on_the_end": end / rows}
    table |= {
        "aligned_mass": mass / words if words else undefined,
        "aligned_words": hits / words if words else undefined,
    }
    columns = {name: values.tolist() if isinstance(values, Tensor) else values for name, values in table.items()}
    return pd.DataFrame(columns), displayed


def _bits(weights: Tensor) -> Tensor:
    """Return the entropy of rows ``[layers, H, T, S]``, averaged over heads and summed over rows: ``[layers]``."""
    return torch.special.entr(weights).sum(-1).mean(1).sum(1) / torch.log(torch.tensor(2.0))


def _preference(number: int, word_map: WordMap) -> tuple[bool, int, int]:
    """Return the sort key for display: pairs with enough words first, then shorter and earlier pairs."""
    words = len(word_map.target)
    return words < ENOUGH_WORDS, words, number
