"""Translators of the plugin with attention forms: decoding under a mask against scoring under the same mask."""

import pytest
import torch

pytest.importorskip("replication.translation.fairseq")
from fairseq.sequence_generator import SequenceGenerator
from translators import logits, stock_and_ours

from sparselib.control import TokenPairs
from sparselib.forms import FORMS
from sparselib.masks import HEAD_COMBINATIONS

#: Options by the name of the form or of the factorised pattern and its heads.
RESTRICTED = {name: {"attention_form": name, "attention_budget": 2} for name in FORMS} | {
    f"{pattern}, {heads}": {
        "factorised_pattern": pattern, "factorised_stride": 2, "factorised_summary": summary, "factorised_heads": heads
    }
    for pattern, summary in (("strided", None), ("fixed", 1))
    for heads in HEAD_COMBINATIONS
}  # fmt: skip


def restricted(task, options):
    """A model whose heads are far from uniform, and the same that attends to everything."""
    free, ours = (
        stock_and_ours(task, **changes)[1].eval() for changes in ({}, {"attention_normalizer": None} | options)
    )
    with torch.no_grad():
        for name, weight in ours.named_parameters():
            if "q_proj" in name or "v_proj" in name:
                weight.mul_(4)
    free.load_state_dict(ours.state_dict())
    return ours, free


@pytest.mark.parametrize("name", RESTRICTED)
def test_beam_search_under_a_form_equals_teacher_forcing(task, batch, name):
    ours, free = restricted(task, RESTRICTED[name])
    generator = SequenceGenerator([ours], task.target_dictionary, beam_size=3, max_len_b=9, min_len=9)
    sample = {"net_input": {"src_tokens": batch[0], "src_lengths": batch[1]}}
    with torch.no_grad():
        for row, hypotheses in enumerate(generator.generate([ours], sample)):
            # The sentence alone: neither the padding of a batch on its left nor the beams change what attends to what.
            source = batch[0][row : row + 1, -batch[1][row] :]
            for hypothesis in hypotheses:
                tokens = hypothesis["tokens"]
                before = torch.cat([tokens.new_tensor([task.target_dictionary.eos()]), tokens[:-1]])[None]
                output = ours(source, batch[1][row : row + 1], before)
                scores = ours.get_normalized_probs(output, log_probs=True)[0].gather(-1, tokens[:, None])[:, 0]
                assert torch.allclose(hypothesis["positional_scores"], scores, atol=1e-4)
        real = batch[2] != task.target_dictionary.pad()
        assert torch.allclose(logits(ours, batch)[real], logits(free, batch)[real], atol=1e-3) == (name == "Full")


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_where_the_paper_has_them_and_learn(task, batch, name):
    ours, _ = restricted(task, RESTRICTED[name])
    places = {place for place, control in ours.attention_controls.items() if control.mode != TokenPairs()}
    assert places == {"encoder", "decoder"} | ({"cross"} if name in ("Full", "Random", "Top-k") else set())
    logits(ours.train(), batch).square().sum().backward()
    assert all(layer.self_attn.k_proj.weight.grad.isfinite().all() for layer in ours.encoder.layers)
    assert ours.decoder.layers[0].self_attn.v_proj.weight.grad.abs().max() > 0


@pytest.mark.parametrize(("name", "cross"), [("Top-k", "Full"), ("Top-k OOW", "Top-k")])
def test_cross_attention_may_have_a_form_of_its_own(task, batch, name, cross):
    """At a budget of 2 a query of the decoder reads as many source tokens as that form says."""
    ours, _ = restricted(task, RESTRICTED[name] | {"attention_cross_form": cross})
    masks_of = {}
    with ours.attention_controls["cross"].observing(lambda call, mask: masks_of.update({call.layer: mask})):
        logits(ours, batch)
    lengths = (batch[0] != task.source_dictionary.pad()).sum(-1)
    for mask in masks_of.values():
        counts = mask.expand(len(lengths), 4, -1, -1).sum(-1)
        read = lengths if cross == "Full" else lengths.clamp(max=2)
        assert torch.equal(counts, read[:, None, None].expand_as(counts))


@pytest.mark.parametrize("name", ["strided", "fixed"])
def test_a_factorised_decoder_attends_by_its_parts_in_turn(task, batch, name):
    options = {"factorised_pattern": name, "factorised_stride": 3, "factorised_summary": 2 if name == "fixed" else None}
    ours, _ = restricted(task, options)
    masks_of = {}
    control = ours.attention_controls["decoder"]
    with control.observing(lambda call, mask: masks_of.update({call.layer: mask})), torch.no_grad():
        logits(ours, batch)
    assert {place for place, one in ours.attention_controls.items() if one.mode != TokenPairs()} == {"decoder"}
    parts = {
        "strided": [lambda i, j: i - j <= 3, lambda i, j: (i - j) % 3 == 0],
        "fixed": [lambda i, j: i // 3 == j // 3, lambda i, j: j % 3 >= 1],
    }[name]
    for layer, part in enumerate(parts):
        expected = torch.tensor([[j <= i and part(i, j) for j in range(8)] for i in range(8)])
        assert torch.equal(masks_of[layer][0].expand(4, 8, 8), expected.expand(4, 8, 8)), layer  # a target of all 8


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"attention_form": "Window", "attention_budget": None}, "--attention-budget"),
        ({"attention_form": "Window", "attention_budget": 0}, "`k` must be at least 1"),
        ({"factorised_pattern": "strided"}, "--factorised-stride"),
        ({"factorised_pattern": "strided", "factorised_stride": 0}, "`stride` must be at least 1"),
        ({"factorised_pattern": "fixed", "factorised_stride": 4}, "`summary` must be given for fixed"),
        (RESTRICTED["Window"] | RESTRICTED["strided, merged"], "cannot be combined with --attention-form"),
    ],
)
def test_options_of_forms_that_do_not_fit_are_named(task, options, named):
    with pytest.raises(ValueError, match=named):
        restricted(task, options)
