"""What a model's layers attend along, in training and when decoding step by step.

::

    form_graph = FormGraph([form("Window", 8)] * control.layers, causal=True)
    predicted = PredictedGraph(projections, [Distance(1.0)] * control.layers, window=3, global_tokens="first_last")
    with control.restricted_to(predicted): model(ids)

A factorised pattern is a form too: ``[factorised("strided", 16, layer=n) for n in range(control.layers)]``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from sparselib.blocks.kernel_arguments import token_rules
from sparselib.checks import one_of
from sparselib.control import LayerCall
from sparselib.masks import combine
from sparselib.predictors.buckets import Bucketed, share_a_bucket
from sparselib.predictors.protocol import Predictor
from sparselib.predictors.rows import Rows, RowWise

__all__ = ["FormGraph", "PredictedGraph"]


@dataclass(frozen=True)
class FormGraph:
    """One attention form per layer.

    Positions count the real tokens of a sentence, so padding on the left moves no block and no global token. Cross-attention
    of Hugging Face models tells no positions of queries: Random draws other keys there when decoding than in training.

    >>> from sparselib.forms import form
    >>> q = k = torch.zeros(1, 2, 4, 8)
    >>> call = LayerCall(0, q, k, visible=torch.ones(1, 1, 4, 4, dtype=torch.bool).tril())
    >>> FormGraph([form("Window", 2)], causal=True)(call)[0, 0].int()
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """

    forms: Sequence[RowWise]  #: One per layer, of :func:`sparselib.forms.form` or :func:`sparselib.forms.factorised`.
    causal: bool  #: For the self-attention of a decoder.

    def __call__(self, call: LayerCall) -> Tensor:
        """Bool that broadcasts to ``[B, H, Q, K]``; without positions of queries, these are taken for those of the last keys.

        Raises ``ValueError`` for cross-attention in a form that has none, as far as it is seen.
        """
        form, q, keys = self.forms[call.layer], call.q, call.k.shape[2]
        filled = _filled(call.visible) if q.shape[2] < keys else keys
        k, visible = call.k[:, :, :filled], call.visible[..., :filled]
        of = (visible.any(dim=2, keepdim=True).cumsum(-1) - 1).clamp(min=0)  # padding has no position; any will do
        if call.positions is not None:
            at = call.positions[:, None]
        elif q.shape[2] <= filled:
            at = of[..., filled - q.shape[2] :].mT
        else:
            at = torch.arange(q.shape[2], device=q.device)[:, None]
        if not form.cross and (call.positions is not None or q.shape[2] > filled):
            raise ValueError(f"{type(form).__name__} is for self-attention, not for {q.shape[2]} queries of other keys")
        precise = torch.promote_types(q.dtype, torch.float32)
        pairs = form.pairs(Rows(q.detach().to(precise), k.detach().to(precise), visible, at, of, self.causal))
        return pad(pairs, (0, keys - filled))


@dataclass(frozen=True)
class PredictedGraph:
    """Predicted edges, window and global tokens (section 4.3) in every layer of self-attention.

    In a decoder, Distance and k-means decide about each pair by itself, so a step of incremental decoding needs the new query
    only. The other predictors rank, route or draw over a whole sequence; a decoder knows its prefix only, so their row for a
    query is the last row of what they predict on the prefix that ends there. Patterns of positions are drawn for a prefix with
    one more token to come.

    >>> from sparselib.predictors import Distance
    >>> x = torch.tensor([0.0, 3.0, 0.1, 7.0]).view(1, 1, 4, 1)
    >>> call = LayerCall(0, x, x, visible=torch.ones(1, 1, 4, 4, dtype=torch.bool))
    >>> PredictedGraph([lambda x: x], [Distance(1.0)], global_tokens="first")(call)[0, 0].int()
    tensor([[1, 1, 1, 1],
            [1, 1, 0, 0],
            [1, 0, 1, 0],
            [1, 0, 0, 1]], dtype=torch.int32)
    """

    projections: Sequence[Callable[[Tensor], Tensor]]  #: One per layer, ``[B, H, n, D]`` -> ``[B, H, n, R]``.
    predictors: Sequence[Predictor]  #: One per layer.
    window: int = (
        0  #: Total width, as in :func:`sparselib.masks.sliding_window`; in a decoder half of it is the future.
    )
    global_tokens: str = "none"  #: Or ``"first"``, or ``"first_last"``; a decoder does not know the last token.
    causal: bool = False  #: For a decoder.

    def __post_init__(self) -> None:
        one_of(
            "global_tokens", self.global_tokens, ("none", "first") if self.causal else ("none", "first", "first_last")
        )

    @property
    def needs_prefix(self) -> bool:
        """Whether incremental decoding has to keep the queries of the whole prefix."""
        return self.causal and any(predictor.needs.prefix for predictor in self.predictors)

    def __call__(self, call: LayerCall) -> Tensor:
        """``Bool[B, H, Q, K]``.

        Raises ``ValueError`` in an encoder for padding that is not on the right. In a decoder that is refused where sentences
        are looked at from their start; so is a cache without the queries of the prefix, where a predictor needs them.
        """
        project, predictor = self.projections[call.layer], self.predictors[call.layer]
        if not self.causal:
            _, lengths = token_rules(call.visible)
            predicted = predictor.predict(project(call.q), project(call.k), lengths=lengths)
            return combine(predicted, self.window, self.global_tokens, lengths)
        rows, keys = call.q.shape[2], call.k.shape[2]
        filled = keys if rows == keys else _filled(call.visible)
        if predictor.needs.prefix or self.global_tokens != "none":
            if not call.visible[..., 0].any(-1).all():
                raise ValueError("padding on the left: where its sentences begin is not known to this graph")
        q, k = project(call.q if call.prefix is None else call.prefix), project(call.k[:, :, :filled])
        if not predictor.needs.prefix:
            predicted = predictor.predict(q[:, :, -rows:], k)
        elif q.shape[2] == filled:
            predicted = _last_rows_of_prefixes(predictor, q, k, rows)
        else:
            name = type(predictor).__name__
            raise ValueError(f"{name} looks at the queries of a whole prefix: decode without a cache (use_cache=False)")
        return pad(combine(predicted, self.window, self.global_tokens, causal=True), (0, keys - filled))


def _filled(visible: Tensor) -> int:
    """Up to which key any query sees: a static cache has room for keys to come."""
    return int(visible.any(dim=2).flatten(0, 1).any(dim=0).nonzero()[-1]) + 1


def _last_rows_of_prefixes(predictor: Predictor, q: Tensor, k: Tensor, rows: int) -> Tensor:
    """For each of the last rows, the last one of what is predicted on the prefix that ends there: ``Bool[B, H, rows, n]``."""
    length = k.shape[2]
    predicted = torch.zeros(*q.shape[:2], rows, length, dtype=torch.bool, device=q.device)
    for row in range(rows):
        end = length - rows + row + 1
        queries, keys = q[:, :, :end], k[:, :, :end]
        if predictor.needs.positions:
            # A pattern that favours the last token, as BigBird's does, must not take every new token for the last. Sentences
            # and beams share one draw: while decoding, they change places.
            queries, keys = (pad(x[:1], (0, 0, 0, 1)) for x in (queries, keys))
        if isinstance(predictor, Bucketed):  # no need to compare the buckets of the other queries
            query_buckets, key_buckets = predictor.assign(queries, keys)
            predicted[:, :, row, :end] = share_a_bucket(query_buckets[:, :, -1:], key_buckets)[:, :, 0]
        else:
            predicted[:, :, row, :end] = predictor.predict(queries, keys, causal=True)[:, :, end - 1, :end]
    return predicted
