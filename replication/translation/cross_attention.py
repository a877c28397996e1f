"""Cross-attention of a translator, word by word: how concentrated it is, and whether it finds the words' counterparts.

The row of a target word is the one that its first piece is predicted from.
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
#: A map of fewer target words shows little.
ENOUGH_WORDS = 8


@dataclass(frozen=True)
class WordMap:
    """Weights ``[layers, H, T, S]`` from T target words to S source words, the last of which is the sentence's end."""

    source: list[str]
    target: list[str]
    weights: Tensor


def word_map(pieces: tuple[list[str], list[str]], weights: Tensor) -> WordMap:
    """Weights ``[layers, H, target pieces + 1, source pieces + 1]``, ends included, from pieces to words.

    Weights of the pieces of a source word are added up.
    """
    (source, columns), (target, rows) = (_words(side) for side in pieces)
    columns = torch.tensor([*columns, len(source)])
    summed = weights.new_zeros(*weights.shape[:-1], len(source) + 1).index_add(-1, columns, weights)
    first = [rows.index(word) for word in range(len(target))]
    return WordMap([*source, "</s>"], target, summed[:, :, first])


def _words(pieces: list[str]) -> tuple[list[str], list[int]]:
    """Words, and for each piece the number of its word."""
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
def word_maps(translator: Translator, split: str, batch_tokens: int) -> Iterator[tuple[int, WordMap, Tensor]]:
    """Number, map and piece-level weights ``[layers, H, T, S]`` of every pair of a split, teacher-forced, longest last."""
    dataset, padding = translator.dataset(split), translator.dictionary.pad()
    control = translator.model.attention_controls["cross"]
    for sample in translator.batches(dataset, list(range(len(dataset))), batch_tokens):
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
            of_pair = weights[row][:, :, : len(pair["target"])][..., real]
            pieces = tuple(
                [translator.dictionary[token] for token in pair[side][:-1].tolist()] for side in ("source", "target")
            )
            yield number, word_map(pieces, of_pair), of_pair


def describe(
    translator: Translator, split: str, alignments: list[list[tuple[int, int]]] | None, batch_tokens: int
) -> tuple[pd.DataFrame, tuple[int, WordMap]]:
    """Measures per decoder layer, means over heads, and one map to look at: the first of the shortest with enough words.

    ``entropy`` (bits), ``entropy_of_8`` (that of the eight largest weights alone), ``attended`` (nonzero weights) and
    ``on_the_end`` (weight of the source's last token, the sentence's end) are means over all target pieces; ``aligned_mass`` is
    the weight that a word with counterparts gives to them, and ``aligned_words`` the share of these words whose largest weight,
    in the mean over heads, is at a counterpart; NaN without ``alignments``.

    Parameters
    ----------
    alignments : for each pair of the split, (word in the source, word in the target)

    Raises
    ------
    ValueError
        If there are not as many alignments as pairs.
    """
    pairs = len(translator.dataset(split))
    if alignments is not None and len(alignments) != pairs:
        raise ValueError(f"{len(alignments)} alignments for {pairs} pairs of {split}")
    entropy, of_8, nonzero, end, rows, mass, found, words = 0.0, 0.0, 0.0, 0.0, 0, 0.0, 0.0, 0
    shown: tuple[int, WordMap] | None = None
    for number, of_words, weights in word_maps(translator, split, batch_tokens):
        if shown is None or _preference(number, of_words) < _preference(*shown):
            shown = number, of_words
        entropy = entropy + _bits(weights)
        largest = weights.topk(min(8, weights.shape[-1])).values
        of_8 = of_8 + _bits(largest / largest.sum(-1, keepdim=True))
        nonzero = nonzero + (weights > 0).sum(-1).double().mean(1).sum(1)
        end = end + weights[..., -1].mean(1).sum(1)
        rows += weights.shape[2]
        if alignments is not None:
            gold = torch.zeros(len(of_words.target), len(of_words.source), dtype=torch.bool, device=weights.device)
            for source, target in alignments[number]:
                gold[target, source] = True
            linked = gold.any(-1)
            mean = of_words.weights.mean(1)
            mass = mass + (mean * gold).sum((1, 2))
            found = found + (gold & (mean == mean.amax(-1, keepdim=True))).any(-1).sum(1)
            words += int(linked.sum())
    layers = translator.decoder.layers
    nothing = torch.full((layers,), torch.nan)
    table = {"layer": range(layers), "entropy": entropy / rows, "entropy_of_8": of_8 / rows}
    table |= {"attended": nonzero / rows, "on_the_end": end / rows}
    table |= {"aligned_mass": mass / words if words else nothing, "aligned_words": found / words if words else nothing}
    columns = {name: values.tolist() if isinstance(values, Tensor) else values for name, values in table.items()}
    return pd.DataFrame(columns), shown


def _bits(weights: Tensor) -> Tensor:
    """Entropy of rows ``[layers, H, T, S]``, mean over heads, summed over rows: ``[layers]``."""
    return torch.special.entr(weights).sum(-1).mean(1).sum(1) / torch.log(torch.tensor(2.0))


def _preference(number: int, word_map: WordMap) -> tuple[bool, int, int]:
    """The smallest is shown: the first of the shortest with enough words."""
    words = len(word_map.target)
    return words < ENOUGH_WORDS, words, number
