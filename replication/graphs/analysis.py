"""Interpretation of heads and clusters over a corpus: coreference (Fig. 5) and parts of speech (Fig. 6)."""

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from replication.graphs.shards import LayerGraphs
from sparselib.dense_attention import attention_weights
from sparselib.predictors import Clustering
from sparselib.projections import Projection


def mentions(chains: Tensor) -> Tensor:
    """Number the mentions in each row of ``chains [..., n]``.

    A mention is a maximal run of tokens of one chain. Tokens outside every chain get -1.
    """
    starts = torch.ones_like(chains, dtype=torch.bool)
    starts[..., 1:] = chains[..., 1:] != chains[..., :-1]
    return starts.cumsum(-1).masked_fill(chains < 0, -1)


def coreferent_pairs(chains: Tensor) -> Tensor:
    """Return ``Bool[..., n, n]``, True where two tokens lie in different mentions of the same chain."""
    number = mentions(chains)
    same_chain = (chains[..., :, None] == chains[..., None, :]) & (chains[..., :, None] >= 0)
    return same_chain & (number[..., :, None] != number[..., None, :])


def coreference_by_head(graphs: LayerGraphs, chains: Tensor, batch_size: int = 8) -> pd.DataFrame:
    """Measure how much attention each head of a layer gives to coreferent tokens.

    Parameters
    ----------
    graphs : LayerGraphs
        Graphs of the layer.
    chains : integer Tensor ``[N, n]``
        Chain numbers of the whole split, indexed by ``graphs.sequence``.
    batch_size : int, default 8
        Sequences per batch.

    Returns
    -------
    DataFrame
        A row per head: ``mass``, the mean attention from a token to other mentions of its chain, over tokens that have any;
        ``chance``, the same mean for uniform attention; ``tokens``, the number of such tokens.
    """
    mass, chance, tokens = torch.zeros(graphs.heads, dtype=torch.float64), 0.0, 0
    for batch in graphs.batches(batch_size):
        numbers = graphs.sequence[batch.first : batch.first + len(batch.q)]
        pairs = coreferent_pairs(chains[numbers][:, : batch.q.shape[2]]).unsqueeze(1) & batch.visible
        weights = attention_weights(batch.q, batch.k, batch.visible, normalizer=batch.normalizer)
        mass += (weights * pairs).sum((0, 2, 3), dtype=torch.float64)
        chance += float((pairs.sum(-1) / batch.visible.sum(-1).clamp_min(1)).sum())
        tokens += int(pairs.any(-1).sum())
    columns = {"head": range(graphs.heads), "mass": mass.numpy(), "chance": chance}
    table = pd.DataFrame(columns)
    return table.assign(mass=table.mass / max(tokens, 1), chance=table.chance / max(tokens, 1), tokens=tokens)


def tags_over_clusters(
    graphs: LayerGraphs,
    projection: Projection,
    centroids: Tensor,
    tags: Tensor,
    tag_names: list[str],
    batch_size: int = 8,
) -> pd.DataFrame:
    """Count the tokens of each tag in each cluster (top 1), for queries and keys of every head of a layer.

    Parameters
    ----------
    graphs : LayerGraphs
        Graphs of the layer.
    projection : Projection
        Projection of the layer.
    centroids : Tensor ``[H, C, R]``
        Centroids of the clusters.
    tags : integer Tensor ``[N, n]``
        Tag numbers of the whole split; -1 for no tag.
    tag_names : list of str
        Names of the tags, by number.
    batch_size : int, default 8
        Sequences per batch.

    Returns
    -------
    DataFrame
        A row per head, side (``query``, ``key``), tag and cluster: ``count``, and ``share`` of the tag's tokens.
    """
    clustering = Clustering(centroids)
    heads, clusters = centroids.shape[:2]
    counts = torch.zeros(2, heads, len(tag_names), clusters)
    for batch in graphs.batches(batch_size):
        numbers = graphs.sequence[batch.first : batch.first + len(batch.q)]
        tag = tags[numbers][:, : batch.q.shape[2]].long()
        one_hot = torch.nn.functional.one_hot(tag.clamp_min(0), len(tag_names)).float() * (tag >= 0).unsqueeze(-1)
        assigned = clustering.assign(projection(batch.q), projection(batch.k), batch.lengths)
        for side, buckets in enumerate(assigned):
            counts[side] += torch.einsum("bnt,bhnc->htc", one_hot, buckets.float())
    index = pd.MultiIndex.from_product(
        [["query", "key"], range(heads), tag_names, range(clusters)], names=["side", "head", "tag", "cluster"]
    )
    table = pd.DataFrame({"count": counts.flatten().int().numpy()}, index).reset_index()
    table["share"] = table["count"] / table.groupby(["side", "head", "tag"])["count"].transform("sum").clip(lower=1)
    return table


def tag_information(table: pd.DataFrame) -> pd.Series:
    """Return the mutual information of tag and cluster in bits, per layer, head and side.

    ``table`` concatenates tables of :func:`tags_over_clusters`, with a ``layer`` column.
    """

    def information(counts: pd.DataFrame) -> float:
        joint = counts.pivot_table(index="tag", columns="cluster", values="count", aggfunc="sum").to_numpy()
        joint = joint / joint.sum()
        independent = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        present = joint > 0
        return float((joint[present] * np.log2(joint[present] / independent[present])).sum())

    keys = ["layer", "head", "side"]
    return pd.Series({key: information(rows) for key, rows in table.groupby(keys)}).rename_axis(keys)
