"""Measuring a translator: BLEU, its decoder's attention graphs, and what predicted graphs do to it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from sacrebleu.metrics import BLEU
from torch import Tensor
from tqdm import tqdm

from replication.corpora.subwords import detokenizer, join_pieces
from replication.graphs.grids import Member
from replication.graphs.shards import writing_graphs
from replication.translation.model import Translator
from replication.translation.predicted import DecoderGraph
from sparselib.dense_attention import gold_graph
from sparselib.projections import Projection


def score(hypotheses: list[str], references: list[str]) -> tuple[float, str]:
    """Corpus BLEU as sacreBLEU computes it by default (cased, 13a), and its signature.

    Raises
    ------
    ValueError
        If there are not as many hypotheses as references; nothing is scored then.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses for {len(references)} references: nothing is scored")
    metric = BLEU(force=True)  # no warning about text whose words are set apart: it is so on both sides
    value = metric.corpus_score(hypotheses, [references]).score
    return value, str(metric.get_signature())


def to_text(pieces: list[str], words: str, language: str) -> list[str]:
    """Hypotheses in pieces as text: pieces joined, and the tokenisation undone."""
    detokenize = detokenizer(words, language)
    return [detokenize(join_pieces(line)) for line in pieces]


@torch.no_grad()
def extract_decoder_graphs(
    translator: Translator, split: str, sentences: int, shortest: int, seed: int, batch_tokens: int, folder: Path
) -> pd.DataFrame:
    """Store queries and keys of every layer's decoder self-attention, teacher-forced, for sentences drawn at random.

    Parameters
    ----------
    shortest : int
        Only target sentences of more pieces than this (20 in the paper).

    Returns
    -------
    A row per stored sentence, in the order of the graphs: ``sequence``, ``source``, ``target`` in pieces.

    Raises
    ------
    ValueError
        If no sentence is long enough.
    """
    dataset = translator.dataset(split)
    eligible = [i for i in range(len(dataset)) if len(dataset[i]["target"]) > shortest]
    if not eligible:
        raise ValueError(f"no target sentence of {split} has more than {shortest} pieces")
    order = torch.randperm(len(eligible), generator=torch.Generator().manual_seed(seed))[:sentences].sort().values
    chosen = [eligible[i] for i in order.tolist()]
    place = {index: row for row, index in enumerate(chosen)}
    attention = translator.model.decoder.layers[0].self_attn
    longest = max(len(dataset[i]["target"]) for i in chosen)
    paths = [folder / f"layer{layer:02}.safetensors" for layer in range(translator.decoder.layers)]
    with writing_graphs(
        paths, torch.tensor(chosen), attention.num_heads, longest, attention.head_dim, causal=True
    ) as writer:
        for sample in tqdm(translator.batches(dataset, chosen, batch_tokens), desc="extract", mininterval=5):
            lengths = (sample["target"] != translator.dictionary.pad()).sum(1).cpu()
            rows = [place[index] for index in sample["id"].tolist()]

            def store(layer, q, k, visible, rows=rows, lengths=lengths):
                for n, row in enumerate(rows):
                    writer.write(layer, row, q[n : n + 1], k[n : n + 1], lengths[n : n + 1])

            with translator.decoder.observing(store):
                translator.model(**sample["net_input"])
    text = {side: [translator.dictionary.string(dataset[i][side]) for i in chosen] for side in ("source", "target")}
    return pd.DataFrame({"sequence": chosen, **text})


@dataclass
class _Tally:
    """Pairs counted over all steps, layers and heads of one decoding."""

    visible: int = 0
    predicted: int = 0
    gold: int = 0
    hits: int = 0

    def add(self, mask: Tensor, gold: Tensor, visible: Tensor) -> None:
        mask = mask & visible
        self.visible += int(visible.sum()) * mask.shape[1]
        self.predicted += int(mask.sum())
        self.gold += int(gold.sum())
        self.hits += int((mask & gold).sum())

    def measures(self) -> dict[str, float]:
        return {
            "sparsity": 1 - self.predicted / self.visible,
            "recall": self.hits / self.gold,
            "gold_sparsity": 1 - self.gold / self.visible,
        }


def evaluate_replaced(
    translator: Translator,
    split: str,
    sentences: int,
    references: list[str],
    words: str,
    projections: list[Projection],
    centroids: list[dict[str, Tensor]],
    members: list[Member],
    windows: list[int],
    global_tokens: str,
    seed: int,
    beam: int,
    batch_tokens: int,
) -> pd.DataFrame:
    """BLEU with the graphs of all decoder self-attention layers and heads replaced by predicted ones.

    A row per member and window, and two rows for the model itself: ``full``, and ``gold graph`` with its own graph as
    mask, which sparse-consistency (Proposition 1) makes equal. Sparsity and recall are over all pairs that beam search
    looked at, with gold edges of the states that the replacement has already changed.
    """
    language = translator.task.cfg.target_lang
    projections = [projection.to(translator.device) for projection in projections]

    def row(method: str, setting: str, window: int, graph: Callable, needs_prefix: bool = False) -> dict[str, object]:
        tally = _Tally()

        def replace(layer, q, k, visible):
            new = q[:, :, -visible.shape[2] :]
            mask = graph(layer, q, k, visible)
            tally.add(mask, gold_graph(new, k, visible), visible)
            return mask

        with translator.decoder.restricted_to(replace, past_queries=needs_prefix):
            pieces = translator.translate(split, sentences, beam, batch_tokens)
        bleu, signature = score(to_text(pieces, words, language), references)
        return {"method": method, "setting": setting, "window": window, "bleu": bleu, "signature": signature,
                **tally.measures()}  # fmt: skip

    rows = [
        row("full", "{}", 0, lambda layer, q, k, visible: visible.expand(-1, q.shape[1], -1, -1)),
        row("gold graph", "{}", 0, lambda layer, q, k, visible: gold_graph(q, k, visible)),
    ]
    for member in tqdm(members, desc="replace", unit="member", mininterval=5):
        predictors = [member.build(of_layer, seed + layer) for layer, of_layer in enumerate(centroids)]
        for window in windows:
            graph = DecoderGraph(projections, predictors, window, global_tokens)
            rows.append(row(member.method, member.setting, window, graph, graph.needs_prefix))
    return pd.DataFrame(rows)
