"""fairseq's multi-head attention with any normaliser, optionally restricted to a graph."""

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from sparselib.control import AttentionControl

#: Cache of one attention layer between the steps of incremental decoding.
State = dict[str, Tensor | None]


class ControlledAttention(MultiheadAttention):
    """Replacement of a stock ``MultiheadAttention``, with the same weights and cache format.

    With softmax, it computes the same output as the stock module. The control receives the queries before fairseq scales them
    in place, and the keys of the whole prefix. If the graph needs the prefix's queries, they are cached beside the keys.
    Cross-attention also caches the number of steps so far, which determines the query positions.

    Parameters
    ----------
    stock : MultiheadAttention
        The module to replace.
    control : AttentionControl
        Control of the layer's place.
    layer : int
        Number of the layer.

    Raises
    ------
    ValueError
        If the stock module uses ``bias_kv``, a zero key or xformers.
    """

    def __init__(self, stock: MultiheadAttention, control: AttentionControl, layer: int):
        if stock.bias_k is not None or stock.add_zero_attn or stock.use_xformers:
            raise ValueError("`stock` must be attention without bias_kv, zero key or xformers")
        super().__init__(
            stock.embed_dim,
            stock.num_heads,
            stock.kdim,
            stock.vdim,
            dropout=stock.dropout_module.p,
            self_attention=stock.self_attention,
            encoder_decoder_attention=stock.encoder_decoder_attention,
        )
        self.load_state_dict(stock.state_dict())
        self.control, self.layer = control, layer
        self.normalizer = control.normalizer_of(layer)  # registers the parameters of a learned normaliser

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Tensor | None = None,
        incremental_state: dict | None = None,
        need_weights: bool = True,
        static_kv: bool = False,
        attn_mask: Tensor | None = None,
        before_softmax: bool = False,
        need_head_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output ``[T, B, E]`` for queries ``[T, B, E]``, and the weights if needed.

        Weights are ``[B, T, S]``, averaged over heads, or ``[H, B, T, S]`` if ``need_head_weights``. Other arguments are as in
        the stock module.

        Raises
        ------
        ValueError
            If ``before_softmax`` is set.
        """
        if before_softmax:
            raise ValueError("`before_softmax` must be False, got True: unnormalised scores are not available")
        steps, sentences, _ = query.shape
        state = {} if incremental_state is None else self._get_input_buffer(incremental_state)
        q = self._split(self.q_proj(query))
        if static_kv and state.get("prev_key") is not None:
            k, v, padding = state["prev_key"], state["prev_value"], state["prev_key_padding_mask"]
        else:
            k, v, padding = self._keys_and_values(query if self.self_attention else key, key_padding_mask, state)
        previous_steps = state.get("prev_steps")
        done = 0 if previous_steps is None else int(previous_steps[0])
        prefix = None
        if incremental_state is not None:
            new = {"prev_key": k, "prev_value": v, "prev_key_padding_mask": padding}
            if self.self_attention and self.control.needs_prefix:
                prefix = new["prev_query"] = _append(state.get("prev_query"), q)
            if self.encoder_decoder_attention:
                new["prev_steps"] = torch.full((len(k),), done + steps, device=k.device)  # reordered with the keys
            self._set_input_buffer(incremental_state, new)
        beams = sentences // len(k)  # hypotheses per sentence, which share the encoder output
        visible = _visible(attn_mask, padding)
        positions = None
        if self.encoder_decoder_attention:
            positions = torch.arange(done, done + steps, device=k.device).repeat(beams)
        q, place = self._fold(q, beams), {"prefix": prefix, "positions": positions}
        needs_weights = need_weights or need_head_weights
        if needs_weights or (self.training and self.dropout_module.p):
            weights = self.control.weights(self.layer, q, k, visible, **place)
            output = self.dropout_module(weights).type_as(v) @ v
        else:
            output = self.control.output(self.layer, q, k, v, visible, **place)
        output = self._unfold(output, beams)
        output = self.out_proj(output.permute(2, 0, 1, 3).reshape(steps, sentences, self.embed_dim))
        if not needs_weights:
            return output, None
        weights = self._unfold(weights, beams).transpose(0, 1)
        return output, weights if need_head_weights else weights.mean(0)

    def _keys_and_values(self, source: Tensor, padding: Tensor | None, state: State) -> tuple:
        """Return keys and values ``[B, H, S, D]`` of the whole prefix, and its padding ``Bool[B, S]`` or None."""
        if self.encoder_decoder_attention and self.beam_size > 1:
            source = source[:, :: self.beam_size]
            padding = None if padding is None else padding[:: self.beam_size]
        k = _append(state.get("prev_key"), self._split(self.k_proj(source)))
        v = _append(state.get("prev_value"), self._split(self.v_proj(source)))
        before = state.get("prev_key_padding_mask")
        if before is not None or (padding is not None and k.shape[2] > padding.shape[1]):
            padding = self._append_prev_key_padding_mask(padding, before, len(k), k.shape[2], static_kv=False).bool()
        return k, v, padding

    def _split(self, x: Tensor) -> Tensor:
        """Split ``[T, B, E]`` into heads ``[B, H, T, D]``."""
        return x.view(*x.shape[:2], self.num_heads, self.head_dim).permute(1, 2, 0, 3)

    def _fold(self, q: Tensor, beams: int) -> Tensor:
        """Merge the beams of a sentence, which share its keys: ``[B * beams, H, T, D]`` to ``[B, H, beams * T, D]``."""
        return q.unflatten(0, (-1, beams)).transpose(1, 2).flatten(2, 3) if beams > 1 else q

    def _unfold(self, x: Tensor, beams: int) -> Tensor:
        """Invert :meth:`_fold`."""
        return x.unflatten(2, (beams, -1)).transpose(1, 2).flatten(0, 1) if beams > 1 else x


def _append(before: Tensor | None, x: Tensor) -> Tensor:
    return x if before is None else torch.cat([before, x], dim=2)


def _visible(attn_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
    """Combine fairseq's additive mask ``[T, S]`` and padding mask ``[B, S]`` into one that is True for visible pairs."""
    visible = None if attn_mask is None else (attn_mask == 0)[None, None]
    if padding is not None:
        real = ~padding.bool()[:, None, None]
        visible = real if visible is None else visible & real
    return visible
