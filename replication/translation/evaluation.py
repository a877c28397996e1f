"""Evaluation of a translator: BLEU, decoder attention graphs, and BLEU under predicted graphs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from sacrebleu.metrics import BLEU
from torch import Tensor
from tqdm import tqdm

from replication.corpora.spacing import join_tokens
from replication.corpora.subwords import join_pieces
from replication.graphs import replaced
from replication.graphs.replaced import Replacements
from replication.graphs.shards import writing_graphs
from replication.results.bleu import COUNTS
from replication.translation.model import Translator
from sparselib.control import Graph, LayerCall

#: sacreBLEU's tokenisers of languages that write no spaces between words: its own of Chinese, and characters. Its tokenisers
#: of Japanese and Korean need MeCab. All other languages have its default, 13a.
TOKENIZERS = dict.fromkeys(("zh", "zho", "cmn", "yue", "lzh"), "zh")
TOKENIZERS |= dict.fromkeys(
    ("ja", "jpn", "ko", "kor", "th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bo"), "char"
)


def metric_of(language: str, **options: bool) -> BLEU:
    """Return sacreBLEU's metric with the tokeniser of a target language."""
    # `force` suppresses the warning about tokenised text, since both sides are tokenised.
    return BLEU(tokenize=TOKENIZERS.get(language), force=True, **options)


def score(hypotheses: list[str], references: list[str], language: str) -> tuple[float, str]:
    """Return corpus BLEU in a language with sacreBLEU's other defaults (cased), and its signature.

    Raises
    ------
    ValueError
        If the numbers of hypotheses and references differ.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"`hypotheses` must have one entry per reference ({len(references)}), got {len(hypotheses)}")
    metric = metric_of(language)
    value = metric.corpus_score(hypotheses, [references]).score
    return value, str(metric.get_signature())


def sentence_counts(hypotheses: list[str], references: list[str], language: str) -> pd.DataFrame:
    """Return a row per sentence: its number ``sentence``, and the counts of :data:`replication.results.bleu.COUNTS`."""
    metric, rows = metric_of(language, effective_order=True), []
    for number, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True)):
        bleu = metric.sentence_score(hypothesis, [reference])
        rows.append([number, bleu.sys_len, bleu.ref_len, *bleu.counts, *bleu.totals])
    return pd.DataFrame(rows, columns=["sentence", *COUNTS])


def to_text(translator: Translator, pieces: list[str]) -> list[str]:
    """Join the pieces of each hypothesis and undo the tokenisation."""
    return [join_tokens(join_pieces(line), translator.spacing) for line in pieces]


def ceiling(translator: Translator, split: str, references: list[str]) -> float:
    """Return the BLEU of a perfect translation: of the first references of a split, read from their ids as hypotheses are.

    It is below 100 where the vocabulary lacks a character of the references, or their spaces cannot be known from their tokens.
    """
    dataset = translator.dataset(split)
    pieces = [translator.dictionary.string(dataset[index]["target"]) for index in range(len(references))]
    return score(to_text(translator, pieces), references, translator.task.cfg.target_lang)[0]


@torch.no_grad()
def extract_decoder_graphs(
    translator: Translator, split: str, sentences: int, shortest: int, seed: int, batch_tokens: int, folder: Path
) -> pd.DataFrame:
    """Store queries and keys of every layer's decoder self-attention, teacher-forced, for sentences drawn at random.

    Parameters
    ----------
    translator : Translator
        The model and its data.
    split : str
        Split of the data.
    sentences : int
        Largest number of sentences.
    shortest : int
        Only target sentences with more pieces than this are drawn (20 in the paper).
    seed : int
        Seed of the draw.
    batch_tokens : int
        Tokens per batch.
    folder : Path
        Folder of the graph files.

    Returns
    -------
    DataFrame
        A row per stored sentence, in the order of the graphs: ``sequence``, ``source``, ``target`` in pieces.

    Raises
    ------
    ValueError
        If no sentence is long enough.
    """
    dataset = translator.dataset(split)
    eligible = [i for i in range(len(dataset)) if len(dataset[i]["target"]) > shortest]
    if not eligible:
        raise ValueError(f"{split}: no target sentence has more than {shortest} pieces")
    order = torch.randperm(len(eligible), generator=torch.Generator().manual_seed(seed))[:sentences].sort().values
    chosen = [eligible[i] for i in order.tolist()]
    row_of = {index: row for row, index in enumerate(chosen)}
    attention = translator.model.decoder.layers[0].self_attn
    longest = max(len(dataset[i]["target"]) for i in chosen)
    paths = [folder / f"layer{layer:02}.safetensors" for layer in range(translator.decoder.layers)]
    normalizers = [translator.decoder.normalizer_of(layer) for layer in range(translator.decoder.layers)]
    with writing_graphs(
        paths,
        torch.tensor(chosen),
        attention.num_heads,
        longest,
        attention.head_dim,
        causal=True,
        normalizers=normalizers,
    ) as writer:
        for sample in tqdm(translator.batches(dataset, chosen, batch_tokens), desc="extract", mininterval=5):
            lengths = (sample["target"] != translator.dictionary.pad()).sum(1).cpu()
            rows = [row_of[index] for index in sample["id"].tolist()]

            def store(call, mask, rows=rows, lengths=lengths):
                for n, row in enumerate(rows):
                    writer.write(call.layer, row, call.q[n : n + 1], call.k[n : n + 1], lengths[n : n + 1])

            with translator.decoder.observing(store):
                translator.model(**sample["net_input"])
    text = {side: [translator.dictionary.string(dataset[i][side]) for i in chosen] for side in ("source", "target")}
    return pd.DataFrame({"sequence": chosen, **text})


@dataclass
class PooledTally:
    """Pair counts over all steps, layers and heads of one decoding."""

    visible: int = 0
    predicted: int = 0
    gold: int = 0
    hits: int = 0

    def add(self, mask: Tensor, call: LayerCall) -> None:
        mask, gold = mask & call.visible, call.gold()
        self.visible += int(call.visible.sum()) * mask.shape[1]
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
    references: list[str],
    replacements: Replacements,
    beam: int,
    batch_tokens: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measure the BLEU of beam search under every replacement.

    Parameters
    ----------
    translator : Translator
        The model and its data.
    split : str
        Split of the data.
    references : list of str
        Target text of the first sentences of the split, which are translated.
    replacements : Replacements
        Graphs of the decoder's self-attention.
    beam : int
        Beam size.
    batch_tokens : int
        Tokens per batch.

    Returns
    -------
    scores : DataFrame
        As from :func:`replication.graphs.replaced.evaluate_replaced`, with ``bleu`` and ``signature``. Sparsity and recall
        count all pairs that beam search visits.
    counts : DataFrame
        The :func:`sentence_counts` of every replacement.
    """
    language = translator.task.cfg.target_lang

    def score_along(graphs: Sequence[Graph]) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
        for pieces in translator.translate_along(graphs, split, len(references), beam, batch_tokens):
            text = to_text(translator, pieces)
            bleu, signature = score(text, references, language)
            yield {"bleu": bleu, "signature": signature}, sentence_counts(text, references, language)

    return replaced.evaluate_replaced(score_along, PooledTally, replacements, causal=True, device=translator.device)
