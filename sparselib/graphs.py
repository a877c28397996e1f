"""Graphs that restrict a model's layers, in training and in incremental decoding: ``with control.restricted_to(graph):``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from sparselib.checks import one_of
from sparselib.control import LayerCall
from sparselib.masks import combine
from sparselib.masks.visible import lengths_of
from sparselib.predictors.buckets import Bucketed, share_a_bucket
from sparselib.predictors.protocol import Predictor
from sparselib.predictors.rows import Rows, RowWise

__all__ = ["FormGraph", "PredictedGraph"]


@dataclass(frozen=True)
class FormGraph:
    """A graph with one attention form per layer.

    Positions count real tokens, so padding on the left moves neither blocks nor global tokens. Hugging Face's cross-attention
    passes no query positions, so the form Random draws other keys there in decoding than in training.

    Parameters
    ----------
    forms : sequence of RowWise, such as :func:`sparselib.forms.form`, one per layer
    causal : bool, whether the layers are a decoder's self-attention

    Examples
    --------
    >>> from sparselib.forms import form
    >>> x = torch.zeros(1, 2, 4, 8)
    >>> call = LayerCall(0, x, x, visible=torch.ones(1, 1, 4, 4, dtype=torch.bool).tril())
    >>> FormGraph([form("Window", 2)], causal=True)(call)[0, 0].int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    """

    forms: Sequence[RowWise]
    causal: bool

    def __call__(self, call: LayerCall) -> Tensor:
        """Return the form's pairs, broadcastable to ``Bool[B, H, Q, K]``; queries without positions stand at the last keys."""
        form, q, keys = self.forms[call.layer], call.q, call.k.shape[2]
        filled = _filled(call.visible) if q.shape[2] < keys else keys
        k, visible = call.k[:, :, :filled], call.visible[..., :filled]
        # Padding is never visible, so its position may be any number that is not negative.
        key_positions = (visible.any(dim=2, keepdim=True).cumsum(-1) - 1).clamp(min=0)
        if call.positions is not None:
            query_positions = call.positions[:, None]
        elif call.cross or q.shape[2] > filled:
            query_positions = torch.arange(q.shape[2], device=q.device)[:, None]
        else:
            query_positions = key_positions[..., filled - q.shape[2] :].mT
        if not form.cross and (call.cross or call.positions is not None or q.shape[2] > filled):
            raise ValueError(
                f"`forms[{call.layer}]` must allow cross-attention for {q.shape[2]} queries and {filled} keys of another "
                f"sentence, got {type(form).__name__}; use Full, Random or Top-k"
            )
        precise = torch.promote_types(q.dtype, torch.float32)
        rows = Rows(
            q.detach().to(precise), k.detach().to(precise), visible, query_positions, key_positions, self.causal
        )
        return pad(form.pairs(rows), (0, keys - filled))


@dataclass(frozen=True)
class PredictedGraph:
    """Predicted edges, window and global tokens (section 4.3) in every layer of self-attention.

    In a decoder, predictors that rank, route or draw see a query's prefix: its row is the last row of the prediction for the
    prefix that ends at it. Position patterns are drawn for a prefix with one more token.

    Parameters
    ----------
    projections : sequence of callables ``[B, H, n, D]`` -> ``[B, H, n, R]``, one per layer
    predictors : sequence of Predictor, one per layer
    window : int, the total width as in :func:`sparselib.masks.sliding_window`, whose future half a decoder hides
    global_tokens : ``"none"``, ``"first"`` or, in an encoder, ``"first_last"``
    causal : bool, whether the layers are a decoder's

    Examples
    --------
    >>> from sparselib.predictors import Distance
    >>> x = torch.tensor([0.0, 3.0, 0.1, 7.0]).view(1, 1, 4, 1)
    >>> call = LayerCall(0, x, x, visible=torch.ones(1, 1, 4, 4, dtype=torch.bool))
    >>> PredictedGraph([lambda x: x], [Distance(1.0)], global_tokens="first")(call)[0, 0].int().tolist()
    [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    """

    projections: Sequence[Callable[[Tensor], Tensor]]
    predictors: Sequence[Predictor]
    window: int = 0
    global_tokens: str = "none"
    causal: bool = False

    def __post_init__(self) -> None:
        allowed = ("none", "first") if self.causal else ("none", "first", "first_last")
        one_of("global_tokens", self.global_tokens, allowed)

    @property
    def needs_prefix(self) -> bool:
        """Whether incremental decoding must keep the queries of the whole prefix."""
        return self.causal and any(predictor.needs.prefix for predictor in self.predictors)

    def __call__(self, call: LayerCall) -> Tensor:
        """Return the graph ``Bool[B, H, Q, K]``; encoders, prefix predictors and global tokens need padding on the right.

        Raise ``ValueError`` in cross-attention, whose queries have other lengths and positions than its keys.
        """
        if call.cross:
            raise ValueError(
                f"`call` must be of self-attention, but layer {call.layer} is cross-attention; let your graph return "
                "`call.visible` for layers with `call.cross`"
            )
        project, predictor = self.projections[call.layer], self.predictors[call.layer]
        if not self.causal:
            lengths = lengths_of(call.visible)
            predicted = predictor.predict(project(call.q), project(call.k), lengths=lengths)
            return combine(predicted, self.window, self.global_tokens, lengths)
        rows, keys = call.q.shape[2], call.k.shape[2]
        filled = keys if rows == keys else _filled(call.visible)
        if predictor.needs.prefix or self.global_tokens != "none":
            if not call.visible[..., 0].any(-1).all():
                raise ValueError("`visible` must begin with a real token, got padding on the left; pad on the right")
        q, k = project(call.q if call.prefix is None else call.prefix), project(call.k[:, :, :filled])
        if not predictor.needs.prefix:
            predicted = predictor.predict(q[:, :, -rows:], k)
        elif q.shape[2] == filled:
            predicted = _last_rows_of_prefixes(predictor, q, k, rows)
        else:
            raise ValueError(
                f"`prefix` must hold the queries of all {filled} positions for {type(predictor).__name__}, got {q.shape[2]}; "
                "decode without a cache (use_cache=False)"
            )
        return pad(combine(predicted, self.window, self.global_tokens, causal=True), (0, keys - filled))


def _filled(visible: Tensor) -> int:
    """Return the number of keys up to the last visible one; a static cache has room for later keys."""
    return int(visible.any(dim=2).flatten(0, 1).any(dim=0).nonzero()[-1]) + 1


def _last_rows_of_prefixes(predictor: Predictor, q: Tensor, k: Tensor, rows: int) -> Tensor:
    """Return ``Bool[B, H, rows, n]``: for each of the last rows, the last row predicted for the prefix that ends there."""
    length = k.shape[2]
    predicted = torch.zeros(*q.shape[:2], rows, length, dtype=torch.bool, device=q.device)
    for row in range(rows):
        end = length - rows + row + 1
        queries, keys = q[:, :, :end], k[:, :, :end]
        if predictor.needs.positions:
            # One more token keeps patterns that favour the last token, such as BigBird's, from favouring each new one. All
            # sentences share one draw, because beams change places while decoding.
            queries, keys = (pad(x[:1], (0, 0, 0, 1)) for x in (queries, keys))
        if isinstance(predictor, Bucketed):  # saves comparing the buckets of earlier queries
            query_buckets, key_buckets = predictor.assign(queries, keys)
            predicted[:, :, row, :end] = share_a_bucket(query_buckets[:, :, -1:], key_buckets)[:, :, 0]
        else:
            predicted[:, :, row, :end] = predictor.predict(queries, keys, causal=True)[:, :, end - 1, :end]
    return predicted
