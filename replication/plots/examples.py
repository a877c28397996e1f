"""Examples for illustrations: one sequence in one layer, with words, weights, gold edges and projections."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from replication.corpora.tokens import read_tokens
from replication.files.reading import read_table
from replication.files.verification import listed_files
from replication.graphs import centroids as centroid_files
from replication.graphs import projections as projection_files
from replication.graphs.analysis import coreferent_pairs
from replication.graphs.shards import open_graphs
from replication.results.points import nearest
from sparselib import masks
from sparselib.dense_attention import attention_weights
from sparselib.masks.combine import combine
from sparselib.normalizers import Normalizer, entmax15


@dataclass(frozen=True)
class Example:
    """Tensors of one sequence, ``[1, H, n, ...]``, which predictors accept directly.

    Attributes
    ----------
    words : list of str
        The ``n`` tokens.
    chains : Tensor
        Coreference chain of each token.
    q, k : Tensor
        Queries and keys.
    projected_q, projected_k : Tensor
        Queries and keys, projected to R dimensions.
    weights, gold : Tensor
        The model's exact weights, and the gold edges.
    centroids : dict of str to Tensor
        Trained centroids by name.
    causal : bool
        Whether queries attend only to earlier keys.
    normalizer : callable
        The model's own.
    """

    words: list[str]
    chains: Tensor
    q: Tensor
    k: Tensor
    projected_q: Tensor
    projected_k: Tensor
    weights: Tensor
    gold: Tensor
    centroids: dict[str, Tensor]
    causal: bool
    normalizer: Normalizer = entmax15

    def predicted(self, predictor, window: int = 0, global_tokens: str = "none") -> Tensor:
        """Return a predictor's graph ``Bool[1, H, n, n]`` for the projected queries and keys."""
        learned = predictor.predict(self.projected_q, self.projected_k, causal=self.causal)
        return combine(learned, window, global_tokens, causal=self.causal)

    def by_position(self, window: int, global_tokens: str) -> Tensor:
        """Return the graph of the window and global tokens alone, ``Bool[1, 1, n, n]``."""
        return combine(torch.zeros_like(self.gold[:, :1]), window, global_tokens, causal=self.causal)

    def weights_under(self, graph: Tensor) -> Tensor:
        """Return the model's weights ``[1, H, n, n]`` restricted to the pairs of ``graph``."""
        return attention_weights(self.q, self.k, graph, normalizer=self.normalizer)

    def nearest_centroids(self, kind: str, clusters: int) -> dict[int, Tensor]:
        """Return the ``"kmeans"`` or ``"routing"`` centroids whose number is closest to ``clusters``.

        The dict maps that number to the centroids; it is empty if there are none of this kind.
        """
        stored = {int(name.removeprefix(f"{kind}-")): x for name, x in self.centroids.items() if name.startswith(kind)}
        return {(count := nearest(stored, clusters)): stored[count]} if stored else {}

    @property
    def coreferent(self) -> Tensor:
        """Pairs of tokens in different mentions of one chain, ``Bool[n, n]``."""
        return coreferent_pairs(self.chains)


def within(folder: Path, layer: int, head: int) -> tuple[int, int]:
    """Clip a layer and head, counted from 0, to those of the stored graphs."""
    paths = listed_files(folder / "graphs" / "valid", "layer*.safetensors")
    with open_graphs(paths[0]) as graphs:
        return min(layer, len(paths) - 1), min(head, graphs.heads - 1)


def sequences(folder: Path, split: str = "valid") -> int:
    """Return the number of sequences with stored graphs."""
    with open_graphs(folder / "graphs" / split / "layer00.safetensors") as graphs:
        return len(graphs)


def read_example(folder: Path, layer: int, index: int, split: str = "valid") -> Example:
    """Read one sequence of the masked language model, with the first seed's projections and centroids.

    Parameters
    ----------
    folder : Path
        Folder of the masked language model's results.
    layer : int
        Layer, counted from 0.
    index : int
        Position of the sequence in the layer's graph file.
    split : str
        Split of the corpus.

    Raises
    ------
    FileNotFoundError
        If a file of the workflow is missing.
    FormatError
        If a file has an unexpected kind or content.
    """
    tokens = read_tokens(folder / "tokens" / f"{split}.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer" / "tokenizer.json"))
    with open_graphs(folder / "graphs" / split / f"layer{layer:02}.safetensors") as graphs:
        sequence = int(graphs.sequence[index])
    words = [tokenizer.decode([t], skip_special_tokens=False).strip() for t in tokens["input_ids"][sequence].tolist()]
    return _read(folder, layer, index, split, words, tokens["chains"][sequence])


def read_decoder_example(folder: Path, layer: int, index: int, split: str = "valid") -> Example:
    """Read one sequence of a translator's decoder, like :func:`read_example`.

    ``words`` are the decoder's input: ``</s>`` and the target without its end.
    """
    target = read_table(folder / "graphs" / split / "sentences.parquet")["target"][index]
    words = ["</s>", *target.split()]
    return _read(folder, layer, index, split, words, torch.full((len(words),), -1))


def _read(folder: Path, layer: int, index: int, split: str, words: list[str], chains: Tensor) -> Example:
    name = f"layer{layer:02}.safetensors"
    seed = min((path.name for path in listed_files(folder / "projections", "seed*")), key=lambda name: int(name[4:]))
    with open_graphs(folder / "graphs" / split / name) as graphs:
        batch = graphs.batch(index, index + 1)
    project = projection_files.load(folder / "projections" / seed / name)
    return Example(
        words=words,
        chains=chains,
        q=batch.q,
        k=batch.k,
        projected_q=project(batch.q),
        projected_k=project(batch.k),
        weights=attention_weights(batch.q, batch.k, batch.visible, normalizer=batch.normalizer),
        gold=batch.gold,
        centroids=centroid_files.load(folder / "centroids" / seed / name),
        causal=batch.causal,
        normalizer=batch.normalizer,
    )


def busiest_span(marked: np.ndarray, width: int) -> slice:
    """Return the span of ``width`` positions whose square of ``marked [n, n]`` contains the most True cells."""
    count = marked.shape[0] - width + 1
    if count < 1:
        return slice(0, marked.shape[0])
    best = max(range(count), key=lambda start: marked[start : start + width, start : start + width].sum())
    return slice(best, best + width)


def least_focused(weights: Tensor, kept: Tensor, width: int) -> tuple[int, int]:
    """Return the head and row that give most weight to keys outside ``kept``.

    Parameters
    ----------
    weights : Tensor ``[H, n, n]``
        Attention weights.
    kept : Tensor ``[H, n, n]`` of bool
        Selected keys.
    width : int
        Only rows whose position and kept keys lie within so many positions are considered, because others are hard to read.
        A barely trained model may have none; then the rows that need the fewest positions are.
    """
    count = weights.shape[-1]
    drawn = kept | torch.eye(count, dtype=torch.bool)
    position = torch.arange(count).expand_as(drawn)
    first = position.masked_fill(~drawn, count).amin(-1)
    last = position.masked_fill(~drawn, -1).amax(-1)
    extent = last - first + 1
    shown = extent <= max(width, int(extent.min()))
    cut = (weights * ~kept).sum(-1).masked_fill(~shown, -1.0)
    head, row = divmod(int(cut.argmax()), count)
    return head, row


def span_around(positions: Tensor, width: int, length: int) -> slice:
    """Return a span of ``width`` positions, centred on the given ones as far as the ends of the sequence allow.

    The span is as wide as the given positions need. A sequence shorter than ``width`` gives the whole sequence.
    """
    first, last = int(positions.min()), int(positions.max())
    width = max(width, last - first + 1)
    start = (first + last + 1 - width) // 2
    start = max(0, min(start, length - width))
    return slice(start, min(start + width, length))


def fixed_patterns(length: int) -> dict[str, masks.Pattern]:
    """Return every position pattern once, at sizes that show its shape."""
    generator = torch.Generator().manual_seed(0)
    return {
        "window 7": masks.sliding_window(7),
        "block 8": masks.block(8),
        "dilated 7, step 3": masks.dilated(7, 3),
        "global tokens 0, 20": masks.global_tokens([0, 20]),
        "strided 8 (causal)": masks.strided(8),
        "fixed 8, summary 2 (causal)": masks.fixed(8, 2),
        "random, 4 keys": masks.random_keys(4, [length], 1, generator),
        "Longformer, 3 random globals": masks.longformer(3, [length], generator),
        "BigBird, 3 random keys": masks.bigbird(3, [length], 1, generator),
    }
