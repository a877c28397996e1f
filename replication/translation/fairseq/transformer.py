"""fairseq's transformer with sparse attention in all three places, registered as ``sparse_transformer``."""

import torch
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch import Tensor

from replication.translation.fairseq.attention import ControlledAttention
from replication.translation.fairseq.normalizers import IMPLEMENTATIONS, NORMALIZERS, normalizer_of
from sparselib.control import AttentionControl, TokenPairs
from sparselib.forms import FACTORISED, FORMS, factorised, form
from sparselib.graphs import FormGraph
from sparselib.masks import HEAD_COMBINATIONS

#: Places of attention: encoder self-, decoder self- and cross-attention.
PLACES = ("encoder", "decoder", "cross")
CROSS_FORMS = [name for name in FORMS if form(name, 1).cross]


@register_model("sparse_transformer")
class SparseTransformer(TransformerModel):
    """Transformer whose ``attention_controls`` map each of :data:`PLACES` to the control of its layers."""

    @classmethod
    def add_args(cls, parser) -> None:
        TransformerModel.add_args(parser)
        add = parser.add_argument
        add(
            "--attention-normalizer",
            choices=NORMALIZERS,
            help="function from scores to weights; entmax_alpha learns an alpha per head",
        )
        add(
            "--attention-implementation",
            choices=IMPLEMENTATIONS,
            help="sparselib, or the entmax package where it has the normaliser",
        )
        add("--attention-alpha", type=float, help="alpha of --attention-normalizer entmax, at least 1")
        add("--attention-k", type=int, help="attended keys of --attention-normalizer topk")
        add("--attention-form", choices=list(FORMS), help="in self-attention; Random and Top-k in cross-attention too")
        add("--attention-budget", type=int, help="attended positions of --attention-form")
        add("--attention-cross-form", choices=CROSS_FORMS, help="in cross-attention, instead of --attention-form")
        add("--factorised-pattern", choices=FACTORISED, help="in decoder self-attention, Child et al. (2019)")
        add("--factorised-stride", type=int, help="l of --factorised-pattern")
        add("--factorised-summary", type=int, help="c of --factorised-pattern fixed")
        add(
            "--factorised-heads",
            choices=list(HEAD_COMBINATIONS),
            help="assignment of parts to heads; default interleaved",
        )
        add("--coword-dropout", type=float, help="share of source tokens replaced by <unk> in training (Table 3)")

    @classmethod
    def build_model(cls, args, task) -> "SparseTransformer":
        model = super().build_model(args, task)
        model.attention_controls = {
            place: AttentionControl([normalizer_of(args, heads) for _ in range(layers)], layers)
            for place, layers, heads in (
                ("encoder", len(model.encoder.layers), args.encoder_attention_heads),
                ("decoder", len(model.decoder.layers), args.decoder_attention_heads),
                ("cross", len(model.decoder.layers), args.decoder_attention_heads),
            )
        }
        # Models trained by earlier versions lack these options.
        if getattr(args, "attention_form", None) is not None:
            cross = getattr(args, "attention_cross_form", None) or args.attention_form
            restrict(model.attention_controls, args.attention_form, args.attention_budget, cross)
        if getattr(args, "factorised_pattern", None) is not None:
            factorise(model.attention_controls["decoder"], args)
        for number, layer in enumerate(model.encoder.layers):
            layer.self_attn = ControlledAttention(layer.self_attn, model.attention_controls["encoder"], number)
            layer.can_use_fastpath = False  # torch's fused layer supports softmax only
        for number, layer in enumerate(model.decoder.layers):
            layer.self_attn = ControlledAttention(layer.self_attn, model.attention_controls["decoder"], number)
            layer.encoder_attn = ControlledAttention(layer.encoder_attn, model.attention_controls["cross"], number)
        model.coword_dropout, model.source_dictionary = args.coword_dropout, task.source_dictionary
        return model

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, **arguments):
        if self.training and self.coword_dropout > 0:
            src_tokens = drop_words(src_tokens, self.coword_dropout, self.source_dictionary)
        return super().forward(src_tokens, src_lengths, prev_output_tokens, **arguments)


def restrict(controls: dict[str, AttentionControl], name: str, budget: int | None, cross: str) -> None:
    """Restrict a model's attention permanently to one of ``sparselib.forms.FORMS``.

    Parameters
    ----------
    controls : dict of AttentionControl
        The control of each place.
    name : str
        Form of self-attention.
    budget : int or None
        Attended positions per query.
    cross : str
        Form of cross-attention, which is unrestricted if the form does not support it.

    Raises
    ------
    ValueError
        If the form is unknown, or the budget is missing or below 1.
    """
    if budget is None:
        raise ValueError(f"--attention-budget must be at least 1 for the form {name}, got None")
    for number, (place, control) in enumerate(controls.items()):
        # Different seeds give every layer of every place its own random keys.
        place_form = cross if place == "cross" else name
        forms = [form(place_form, budget, seed=number + len(controls) * layer) for layer in range(control.layers)]
        if place != "cross" or forms[0].cross:
            control.mode = TokenPairs(FormGraph(forms, causal=place == "decoder"))


def factorise(control: AttentionControl, args) -> None:
    """Restrict decoder self-attention permanently to a factorised pattern, which is causal by definition.

    Parameters
    ----------
    control : AttentionControl
        Control of the decoder's self-attention.
    args : Namespace
        fairseq's options.

    Raises
    ------
    ValueError
        If the control has a form already, the stride is missing, or a number is out of range.
    """
    if control.mode != TokenPairs():
        raise ValueError("--factorised-pattern cannot be combined with --attention-form")
    if getattr(args, "factorised_stride", None) is None:
        raise ValueError(f"--factorised-stride must be at least 1 for the {args.factorised_pattern} pattern, got None")
    numbers = {"summary": getattr(args, "factorised_summary", None), "heads": args.factorised_heads}
    forms = [
        factorised(args.factorised_pattern, args.factorised_stride, **numbers, layer=layer)
        for layer in range(control.layers)
    ]
    control.mode = TokenPairs(FormGraph(forms, causal=True))


def drop_words(tokens: Tensor, probability: float, dictionary) -> Tensor:
    """Replace each source token by ``<unk>`` with the given probability (CoWord dropout, Fernandes et al. 2021).

    A subword vocabulary produces ``<unk>`` for nothing else. Padding and end marks are kept.
    """
    dropped = torch.rand(tokens.shape, device=tokens.device) < probability
    dropped &= (tokens != dictionary.pad()) & (tokens != dictionary.eos())
    return tokens.masked_fill(dropped, dictionary.unk())


@register_model_architecture("sparse_transformer", "sparse_transformer")
def sparse_transformer(args) -> None:
    """Set the default options of the architecture."""
    # The papers of the forms and factorised patterns use softmax over the selected keys.
    form_given = any(getattr(args, name, None) is not None for name in ("attention_form", "factorised_pattern"))
    args.attention_normalizer = getattr(args, "attention_normalizer", None) or ("softmax" if form_given else "entmax15")
    args.factorised_heads = getattr(args, "factorised_heads", None) or "interleaved"
    args.coword_dropout = getattr(args, "coword_dropout", None) or 0.0
    base_architecture(args)
