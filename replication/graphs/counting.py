"""Edge counts for every window (and every distance threshold) in one pass over a predicted graph.

A window of width w covers the pairs whose offset j - i needs at most w. Each pair is therefore assigned, once, the smallest
window of the grid that covers it. One histogram over the pairs outside the predicted graph then gives the count for every
window. Graphs are stored as bits, 64 keys per word, because memory traffic limits the speed of a sweep.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from replication.graphs.shards import Batch
from sparselib.masks import combine
from sparselib.predictors.distance import squared_distances

WORD = 64


@dataclass(frozen=True)
class Counts:
    """Counts per grid member, sentence, head and window, ``[M, B, H, W]``.

    ``keyless_rows`` are queries to which the predicted graph itself gives no key, so they are the same for every window.
    """

    predicted: np.ndarray
    hits: np.ndarray
    exact_rows: np.ndarray
    keyless_rows: np.ndarray


class Counter:
    """Comparison of predicted graphs with the gold graph of one batch, for every window and fixed global tokens.

    Parameters
    ----------
    batch : Batch
        Queries and keys that determine the gold graph.
    windows : list of int
        Increasing widths, as in ``sparselib.masks.sliding_window``; 0 is no window.
    global_tokens : str
        ``"none"``, ``"first"`` or ``"first_last"``.

    Raises
    ------
    ValueError
        If ``windows`` are not distinct, non-negative and increasing.
    """

    def __init__(self, batch: Batch, windows: list[int], global_tokens: str):
        if not windows or sorted(set(windows)) != list(windows) or windows[0] < 0:
            raise ValueError(f"windows must be distinct, not negative and increasing; got {windows}")
        self.windows = np.array(windows)
        visible = batch.visible
        self.shape = (len(batch.q), batch.q.shape[1], visible.shape[-1])
        length = self.shape[2]
        gold = batch.gold
        self.gold_size = gold.sum((2, 3)).numpy()
        self.visible_size = visible.sum((1, 2, 3)).numpy()
        self.rows_per_sentence = batch.lengths.numpy()
        self._visible_bits = pack(visible)
        self._by_position = combine(torch.zeros_like(visible), 0, global_tokens, batch.lengths, batch.causal)
        self._visible = visible
        positions = torch.arange(length)
        needed = _width_needed(positions[None, :] - positions[:, None]).numpy()
        # Each entry indexes the smallest window that covers the pair; it is len(windows) if none does.
        self._window_of_pair = np.searchsorted(self.windows, needed).astype(np.int16)
        outside = torch.from_numpy(self._window_of_pair)
        self._window_bits = pack(torch.stack([outside <= w for w in range(len(windows))]))
        self._edge_row, self._edge_key = (x.numpy() for x in gold.flatten(0, 2).nonzero(as_tuple=True))
        self._edge_window = self._window_of_pair[self._edge_row % length, self._edge_key]
        self._row_starts = np.flatnonzero(np.diff(self._edge_row, prepend=-1))
        self._row_of_start = self._edge_row[self._row_starts]
        self._global_bits = pack(self._by_position)

    def count(self, bits: np.ndarray) -> Counts:
        """Count one predicted graph, given as words ``[B, H, Q, words]`` of :func:`pack`."""
        predicted_only = bits & self._visible_bits
        covered = predicted_only | self._global_bits & self._visible_bits
        left_out = (~covered) & self._visible_bits
        size = np.bitwise_count(covered).sum((-1, -2))
        added = np.stack([np.bitwise_count(left_out & window).sum((-1, -2)) for window in self._window_bits])
        predicted = size[None] + added  # [W, B, H]
        edge_words = covered.reshape(-1, covered.shape[-1])[self._edge_row, self._edge_key // WORD]
        is_hit = (edge_words >> (self._edge_key % WORD).astype(np.uint64)) & np.uint64(1) == 1
        needed = np.where(is_hit, 0, self._edge_window + 1)  # 0: covered without a window
        row_needs = np.maximum.reduceat(needed, self._row_starts)
        keyless = self.rows_per_sentence[:, None] - predicted_only.any(-1).sum(-1)  # of real rows, [B, H]
        return Counts(
            predicted.transpose(1, 2, 0)[None],
            self._cumulate(self._edge_row, needed)[None],
            self._cumulate(self._row_of_start, row_needs)[None],
            np.repeat(keyless[None, ..., None], len(self.windows), axis=-1),
        )

    def count_thresholds(self, q: Tensor, k: Tensor, limits: list[float]) -> Counts:
        """Count the graphs ``|q_i - k_j|^2 <= limit`` of all (increasing) limits at once, using a 2-D histogram."""
        sentences, heads, length = self.shape
        levels, widths = len(limits) + 1, len(self.windows) + 1
        # The level of a pair is the index of the smallest limit that covers it. Every limit covers global tokens.
        level = torch.bucketize(squared_distances(q, k), torch.tensor(limits), out_int32=True)
        keyless = self._keyless_rows_by_level(level, levels)
        level.masked_fill_(self._by_position, 0)
        cell = level.mul_(widths).add_(torch.from_numpy(self._window_of_pair))
        cell.masked_fill_(~self._visible, levels * widths)
        cell = cell.flatten(2)
        offsets = torch.arange(sentences * heads, dtype=torch.int32).view(sentences, heads, 1) * (levels * widths + 1)
        table = torch.bincount((cell + offsets).flatten(), minlength=sentences * heads * (levels * widths + 1))
        table = table.view(sentences, heads, -1)[..., :-1].reshape(sentences, heads, levels, widths).numpy()
        edge_cell = cell.flatten()[torch.from_numpy(self._edge_row * length + self._edge_key)].long().numpy()
        edge_level, edge_window = np.divmod(edge_cell, widths)
        group = self._edge_row // length
        gold_table = np.bincount(group * levels * widths + edge_cell, minlength=table.size).reshape(table.shape)
        covers = [_covered_by_either(x) for x in (table, gold_table)]
        exact = self._exact_rows_by_level(edge_level, edge_window, levels)
        return Counts(*(np.moveaxis(x, 2, 0) for x in (*covers, exact, keyless)))

    def _cumulate(self, rows: np.ndarray, needed: np.ndarray) -> np.ndarray:
        """Count, per sentence and head, the items that need at most each window: ``[B, H, W]``."""
        sentences, heads, length = self.shape
        values = len(self.windows) + 2  # no window, each window, none suffices
        table = np.bincount(rows // length * values + needed, minlength=sentences * heads * values)
        return table.reshape(sentences, heads, values).cumsum(-1)[..., 1:-1]

    def _exact_rows_by_level(self, level: np.ndarray, window: np.ndarray, levels: int) -> np.ndarray:
        """Count the rows whose edges all lie within the limit or the window: ``[B, H, M, W]``."""
        rows = np.prod(self.shape)
        needs = torch.zeros(int(rows) * levels, dtype=torch.int64)
        index = torch.from_numpy(self._edge_row * levels + level)
        needs.scatter_reduce_(0, index, torch.from_numpy(window.astype(np.int64)) + 1, "amax")
        needs = needs.view(-1, levels)[torch.from_numpy(self._row_of_start)]
        beyond = needs.flip(1).cummax(1).values.flip(1)[:, 1:].numpy()  # window needed by the edges beyond each limit
        return np.stack([self._cumulate(self._row_of_start, needed) for needed in beyond.T], axis=2)

    def _keyless_rows_by_level(self, level: Tensor, levels: int) -> np.ndarray:
        """Count the real rows without any key within each limit, for every window: ``[B, H, M, W]``."""
        nearest = level.masked_fill(~self._visible, levels).amin(-1)  # no row of padding is within a limit
        within = torch.stack([(nearest <= m).sum(-1) for m in range(levels - 1)], dim=-1)
        keyless = self.rows_per_sentence[:, None, None] - within.numpy()
        return np.repeat(keyless[..., None], len(self.windows), axis=-1)


def pack(graph: Tensor) -> np.ndarray:
    """Pack a boolean tensor ``[..., K]`` into words ``[..., ceil(K / 64)]``, key j in bit j % 64 of word j // 64."""
    keys = graph.shape[-1]
    octets = np.packbits(graph.numpy(), axis=-1, bitorder="little")
    missing = -(-keys // WORD) * (WORD // 8) - octets.shape[-1]
    if missing:
        octets = np.pad(octets, [(0, 0)] * (octets.ndim - 1) + [(0, missing)])
    return np.ascontiguousarray(octets).view(np.uint64)


def _width_needed(offset: Tensor) -> Tensor:
    """Return the smallest width whose window contains the offset j - i: width w spans -ceil(w/2)+1 to floor(w/2)."""
    return torch.where(offset > 0, 2 * offset, 1 - 2 * offset)


def _covered_by_either(table: np.ndarray) -> np.ndarray:
    """Count the pairs within a limit or a window, given their histogram ``[..., levels, widths]``: ``[..., M, W]``."""
    beyond = np.flip(np.flip(table, (-2, -1)).cumsum(-1).cumsum(-2), (-2, -1))  # at least this level and width
    return table.sum((-2, -1))[..., None, None] - beyond[..., 1:, 1:]
