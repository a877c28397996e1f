"""One sequence in one layer, with everything that the illustrations need: words, weights, gold edges, projections."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from replication.corpora.tokens import KIND
from replication.files.reading import read_table
from replication.files.storage import read_tensors
from replication.graphs import centroids as centroid_files
from replication.graphs import projections as projection_files
from replication.graphs.analysis import coreferent_pairs
from replication.graphs.shards import open_graphs
from replication.results import nearest
from sparselib import masks
from sparselib.dense_attention import attention_weights
from sparselib.masks.combine import combine


@dataclass(frozen=True)
class Example:
    """Tensors of one sequence: ``[1, H, n, ...]`` as everywhere, so that predictors take them as they are.

    ``words`` and ``chains`` name the ``n`` tokens; ``q`` and ``k`` are raw, ``projected_q`` and ``projected_k`` in R
    dimensions; ``weights`` and ``gold`` are the exact 1.5-entmax ones.
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

    def predicted(self, predictor, window: int = 0, global_tokens: str = "none") -> Tensor:
        """The graph ``Bool[1, H, n, n]`` that a predictor makes of the projected queries and keys."""
        learned = predictor.predict(self.projected_q, self.projected_k, causal=self.causal)
        return combine(learned, window, global_tokens, causal=self.causal)

    def by_position(self, window: int, global_tokens: str) -> Tensor:
        """The part of a graph that window and global tokens make, ``Bool[1, 1, n, n]``."""
        return combine(torch.zeros_like(self.gold[:, :1]), window, global_tokens, causal=self.causal)

    def weights_under(self, graph: Tensor) -> Tensor:
        """Entmax weights ``[1, H, n, n]`` when only the pairs of ``graph`` may attend."""
        return attention_weights(self.q, self.k, graph)

    def nearest_centroids(self, kind: str, clusters: int) -> dict[int, Tensor]:
        """The ``"kmeans"`` or ``"routing"`` centroids whose number is nearest to what is asked for, by it; or nothing."""
        found = {int(name.removeprefix(f"{kind}-")): x for name, x in self.centroids.items() if name.startswith(kind)}
        return {(count := nearest(found, clusters)): found[count]} if found else {}

    @property
    def coreferent(self) -> Tensor:
        """``Bool[n, n]``: tokens in different mentions of one chain."""
        return coreferent_pairs(self.chains)


def within(folder: Path, layer: int, head: int) -> tuple[int, int]:
    """A layer and head of the stored graphs, counted from 0; the last ones of a model that has fewer."""
    paths = sorted((folder / "graphs" / "valid").glob("layer*.safetensors"))
    with open_graphs(paths[0]) as graphs:
        return min(layer, len(paths) - 1), min(head, graphs.heads - 1)


def sequences(folder: Path, split: str = "valid") -> int:
    """How many sequences' graphs are stored."""
    with open_graphs(folder / "graphs" / split / "layer00.safetensors") as graphs:
        return len(graphs)


def read_example(folder: Path, layer: int, index: int, split: str = "valid") -> Example:
    """Sequence number ``index`` of a layer's graphs, with the students of the first seed; ``folder`` is that of the masked LM.

    Raises
    ------
    FileNotFoundError, FormatError
        If a file of the workflow is missing, or is not what it should be.
    """
    tokens = read_tensors(folder / "tokens" / f"{split}.safetensors", kind=KIND)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer" / "tokenizer.json"))
    with open_graphs(folder / "graphs" / split / f"layer{layer:02}.safetensors") as graphs:
        sequence = int(graphs.sequence[index])
    words = [tokenizer.decode([t], skip_special_tokens=False).strip() for t in tokens["input_ids"][sequence].tolist()]
    return _read(folder, layer, index, split, words, tokens["chains"][sequence])


def read_decoder_example(folder: Path, layer: int, index: int, split: str = "valid") -> Example:
    """The same for the decoder of a translator; ``words`` are what it reads: ``</s>`` and the target without its end."""
    target = read_table(folder / "graphs" / split / "sentences.parquet")["target"][index]
    words = ["</s>", *target.split()]
    return _read(folder, layer, index, split, words, torch.full((len(words),), -1))


def _read(folder: Path, layer: int, index: int, split: str, words: list[str], chains: Tensor) -> Example:
    name = f"layer{layer:02}.safetensors"
    seed = min((path.name for path in (folder / "projections").glob("seed*")), key=lambda name: int(name[4:]))
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
        weights=attention_weights(batch.q, batch.k, batch.visible),
        gold=batch.gold,
        centroids=centroid_files.load(folder / "centroids" / seed / name),
        causal=batch.causal,
    )


def busiest_span(marked: np.ndarray, width: int) -> slice:
    """The ``width`` positions whose square of ``marked [n, n]`` holds the most True cells."""
    count = marked.shape[0] - width + 1
    if count < 1:
        return slice(0, marked.shape[0])
    best = max(range(count), key=lambda start: marked[start : start + width, start : start + width].sum())
    return slice(best, best + width)


def least_focused(weights: Tensor, kept: Tensor, width: int) -> tuple[int, int]:
    """Head and row of ``weights [H, n, n]`` that give most to keys outside ``kept``, Bool of the same shape.

    Only rows that can be drawn are considered: those whose position and kept keys lie within ``width`` positions.

    Raises
    ------
    ValueError
        If no row is one.
    """
    count = weights.shape[-1]
    own_too = kept | torch.eye(count, dtype=torch.bool)
    position = torch.arange(count).expand_as(own_too)
    first = position.masked_fill(~own_too, count).amin(-1)
    last = position.masked_fill(~own_too, -1).amax(-1)
    shown = last - first < width
    if not shown.any():
        raise ValueError(f"width: no row has its position and its kept keys within {width} positions")
    cut = (weights * ~kept).sum(-1).masked_fill(~shown, -1.0)
    head, row = divmod(int(cut.argmax()), count)
    return head, row


def span_around(positions: Tensor, width: int, length: int) -> slice:
    """``width`` of ``length`` positions with the given ones in their middle, as far as the ends allow; all, if fewer.

    Raises
    ------
    ValueError
        If the given ones lie further apart.
    """
    first, last = int(positions.min()), int(positions.max())
    if last - first >= width:
        raise ValueError(f"width: positions {first} to {last} do not fit into {width}")
    start = (first + last + 1 - width) // 2
    start = max(0, min(start, length - width))
    return slice(start, min(start + width, length))


def fixed_patterns(length: int) -> dict[str, masks.Pattern]:
    """Every position pattern once, at sizes that show its shape."""
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
