"""Predicted graphs for a decoder, whole or one step at a time."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from sparselib import masks
from sparselib.checks import one_of
from sparselib.predictors import Clustering, Distance
from sparselib.predictors.positional import Positional
from sparselib.projections import Projection

#: Predictors whose decision about a pair depends on that query and that key alone.
POINTWISE = (Distance, Clustering)


class DecoderGraph:
    """A graph for decoder self-attention: predicted edges, window and global tokens (section 4.3), never the future.

    Distance and k-means decide about each pair by itself, so a step of incremental decoding needs the new query only. The
    other predictors rank, route or draw over a whole sequence; a decoder knows its prefix only, so their row for a query is
    the last row of what they predict on the prefix that ends there. Patterns of positions are drawn for a prefix with one
    more token to come.

    Parameters
    ----------
    projections, predictors : one per layer
    window : total width, as in ``sparselib.masks.sliding_window``; its half to the right is the future
    global_tokens : ``"none"`` or ``"first"``
    """

    def __init__(self, projections: list[Projection], predictors: list, window: int, global_tokens: str):
        one_of("global_tokens", global_tokens, ("none", "first"))  # the last token is not known while decoding
        self.projections, self.predictors = projections, predictors
        self.needs_prefix = not all(isinstance(predictor, POINTWISE) for predictor in predictors)
        self._pattern = masks.sliding_window(window)
        if global_tokens == "first":
            self._pattern = masks.union(self._pattern, masks.global_tokens([0]))
        self._by_position: dict[tuple[int, int], Tensor] = {}

    def __call__(self, layer: int, q: Tensor, k: Tensor, visible: Tensor) -> Tensor:
        """Rows for the last queries: ``q``, ``k`` ``[B, H, n, D]`` before projection, ``visible [B, 1, Q, n]``.

        ``q`` holds all queries of the prefix, or for pointwise predictors at least the last ``Q``.
        """
        rows = visible.shape[2]
        project, predictor = self.projections[layer], self.predictors[layer]
        queries, keys = project(q), project(k)
        if isinstance(predictor, POINTWISE):
            predicted = predictor.predict(queries[:, :, -rows:], keys)
        else:
            predicted = self._rows_of_prefixes(predictor, queries, keys, rows)
        return predicted | self._position_mask(rows, k.shape[2], k.device)

    def _rows_of_prefixes(self, predictor, queries: Tensor, keys: Tensor, rows: int) -> Tensor:
        length = keys.shape[2]
        predicted = torch.zeros(*queries.shape[:2], rows, length, dtype=torch.bool, device=queries.device)
        for row in range(rows):
            end = length - rows + row + 1
            q, k = queries[:, :, :end], keys[:, :, :end]
            if isinstance(predictor, Positional):
                # A pattern that favours the last token, as BigBird's does, must not take every new token for the last.
                q, k = (pad(x, (0, 0, 0, 1)) for x in (q, k))
            predicted[:, :, row, :end] = predictor.predict(q, k, causal=True)[:, :, end - 1, :end]
        return predicted

    def _position_mask(self, rows: int, length: int, device: torch.device) -> Tensor:
        """The last rows of window and global tokens; the same for every layer, so made once per step."""
        if (rows, length) not in self._by_position:
            dense = masks.to_dense(self._pattern, 1, 1, length, device=device)
            self._by_position[rows, length] = dense[:, :, -rows:]
        return self._by_position[rows, length]
