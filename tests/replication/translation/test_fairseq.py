"""The fairseq plugin against stock fairseq."""

from argparse import Namespace

import pytest
import torch

pytest.importorskip("replication.translation.fairseq")
from fairseq.sequence_generator import SequenceGenerator
from translators import logits, stock_and_ours

from replication.translation.fairseq.normalizers import PACKAGES, SMALLEST_ALPHA, LearnedEntmax, normalizer_of
from replication.translation.fairseq.transformer import drop_words
from sparselib.control import attention_control
from sparselib.kernels import support, support_library
from sparselib.normalizers import entmax15


def test_equals_stock_fairseq_in_training(task, batch):
    stock, ours = stock_and_ours(task)
    real = (batch[2] != task.source_dictionary.pad())[..., None]
    outputs = []
    for model in (stock.train(), ours.train()):
        output = logits(model, batch)
        (output * real).square().sum().backward()
        outputs.append(output)
    assert torch.allclose(outputs[0] * real, outputs[1] * real, atol=1e-5)
    for (name, expected), (same, got) in zip(stock.named_parameters(), ours.named_parameters(), strict=True):
        assert name == same
        if expected.grad is not None:
            assert torch.allclose(expected.grad, got.grad, atol=1e-5, rtol=1e-4), name


def test_equals_stock_fairseq_in_teacher_forcing(task, batch):
    stock, ours = stock_and_ours(task)
    with torch.no_grad():
        expected, got = (model.eval()(*batch) for model in (stock, ours))
    real = batch[2] != task.source_dictionary.pad()
    assert torch.allclose(expected[0][real], got[0][real], atol=1e-5)
    assert torch.allclose(expected[1]["attn"][0][real], got[1]["attn"][0][real], atol=1e-5)


def test_equals_stock_fairseq_in_incremental_decoding(task, batch):
    models = stock_and_ours(task)
    with torch.no_grad():
        steps = []
        for model in models:
            model.eval()
            encoded = model.encoder(batch[0], batch[1])
            state = {}
            steps.append([model.decoder(batch[2][:, : t + 1], encoded, state)[0] for t in range(6)])
    for expected, got in zip(*steps, strict=True):
        assert torch.allclose(expected, got, atol=1e-5)


@pytest.mark.parametrize("beam", [1, 5])
def test_beam_search_finds_what_stock_fairseq_finds(task, batch, beam):
    found = []
    for model in stock_and_ours(task):
        generator = SequenceGenerator([model], task.target_dictionary, beam_size=beam, max_len_b=12)
        sample = {"net_input": {"src_tokens": batch[0], "src_lengths": batch[1], "prev_output_tokens": batch[2]}}
        found.append(generator.generate([model], sample))
    for expected, got in zip(*found, strict=True):
        assert [h["tokens"].tolist() for h in expected] == [h["tokens"].tolist() for h in got]
        assert torch.allclose(
            torch.stack([h["score"] for h in expected]), torch.stack([h["score"] for h in got]), atol=1e-5
        )


@pytest.mark.parametrize(
    "arguments",
    [
        {"attention_normalizer": "entmax15"},
        {"attention_normalizer": "sparsemax"},
        {"attention_normalizer": "entmax", "attention_alpha": 1.3},
        {"attention_normalizer": "entmax_alpha"},
        {"attention_normalizer": "entmax_alpha", "attention_implementation": "entmax"},
        {"attention_normalizer": "topk", "attention_k": 2},
    ],
    ids=lambda arguments: "-".join(map(str, arguments.values())),
)
def test_incremental_decoding_equals_teacher_forcing_with_every_normalizer(task, batch, arguments):
    _, ours = stock_and_ours(task, **arguments)
    softmax = stock_and_ours(task)[1].eval()
    ours.eval()
    with torch.no_grad():
        whole = logits(ours, batch)
        encoded, state = ours.encoder(batch[0], batch[1]), {}
        for step in range(batch[2].shape[1]):
            real = batch[2][:, step] != task.source_dictionary.pad()
            one = ours.decoder(batch[2][:, : step + 1], encoded, state)[0][:, 0]
            assert torch.allclose(one[real], whole[:, step][real], atol=1e-5)
    assert not torch.allclose(whole, logits(softmax, batch), atol=1e-3)


def test_an_encoder_without_padding_does_not_take_the_softmax_fast_path(task, batch):
    _, ours = stock_and_ours(task, attention_normalizer="sparsemax")
    ours.eval()
    full = batch[0][:1], batch[1][:1], batch[2][:1]
    called = []
    with torch.no_grad(), ours.attention_controls["encoder"].observing(lambda call, mask: called.append(call.layer)):
        ours(*full)
    assert called == [0, 1]


@pytest.mark.skipif(support_library.library() is None, reason="the support backend was not compiled")
def test_the_compiled_kernel_computes_what_needs_no_weights(task, batch, monkeypatch):
    calls, forward = [], support.forward
    monkeypatch.setattr(support, "forward", lambda *x, **rules: calls.append(rules["keep"]) or forward(*x, **rules))
    _, ours = stock_and_ours(task, attention_normalizer="entmax15")
    output = logits(ours.train(), batch)
    output.square().mean().backward()
    assert calls == [True] * 5  # only the last layer of cross-attention returns weights
    learned = [x for x in ours.parameters() if x.grad is not None]
    gradients = [x.grad.clone() for x in learned]
    with monkeypatch.context() as patch:
        patch.setattr(attention_control, "has_kernel", lambda *_: False)
        ours.zero_grad()
        expected = logits(ours, batch)
        expected.square().mean().backward()
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-4)
    for gradient, parameter in zip(gradients, learned, strict=True):
        torch.testing.assert_close(gradient, parameter.grad, atol=1e-6, rtol=1e-4)
    assert len(calls) == 5
    for layer in ours.encoder.layers:
        layer.self_attn.dropout_module.p = 0.5
    logits(ours, batch)
    assert len(calls) == 8  # the decoder's
    _, packaged = stock_and_ours(task, attention_normalizer="entmax15", attention_implementation="entmax")
    logits(packaged.eval(), batch)
    assert len(calls) == 8


def test_queries_are_seen_before_fairseq_scales_them(task, batch):
    _, ours = stock_and_ours(task)
    ours.eval()
    seen, expected = {}, []
    layer = ours.decoder.layers[0].self_attn
    layer.q_proj.register_forward_hook(lambda module, inputs, output: expected.append(output.clone()))
    with (
        torch.no_grad(),
        ours.attention_controls["decoder"].observing(lambda call, mask: seen.setdefault(call.layer, call.q)),
    ):
        ours(*batch)
    assert torch.equal(seen[0].permute(2, 0, 1, 3).flatten(2), expected[0])


def test_coword_dropout_masks_the_share_asked_for_and_no_padding(task):
    dictionary = task.source_dictionary
    tokens = torch.full((100, 101), 7)
    tokens[:, 50] = dictionary.eos()
    tokens[:, 60:80] = dictionary.pad()
    torch.manual_seed(0)
    dropped = drop_words(tokens, 0.1, dictionary)
    changed = dropped != tokens
    assert (dropped[changed] == dictionary.unk()).all()
    assert not changed[:, 50].any()
    assert not changed[:, 60:80].any()
    assert changed.sum().item() / 8000 == pytest.approx(0.1, abs=0.02)


def test_coword_dropout_is_for_training_only(task, batch):
    _, ours = stock_and_ours(task, coword_dropout=0.9)
    plain = stock_and_ours(task)[1].eval()
    with torch.no_grad():
        assert torch.equal(logits(ours.eval(), batch), logits(plain, batch))
        assert not torch.allclose(logits(ours.train(), batch), logits(plain, batch), atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"attention_normalizer": "entmax", "attention_alpha": 0.5}, "alpha"),
        ({"attention_normalizer": "entmax", "attention_alpha": None}, "alpha"),
        ({"attention_normalizer": "topk", "attention_k": 0}, "attention-k"),
        ({"attention_normalizer": "nothing"}, "nothing"),
        (
            {"attention_normalizer": "topk", "attention_implementation": "entmax"},
            "with --attention-implementation entmax, got topk",
        ),
    ],
)
def test_a_normalizer_out_of_range_is_named(arguments, named):
    with pytest.raises(ValueError, match=named):
        normalizer_of(Namespace(**{"attention_alpha": None, "attention_k": None} | arguments), 4)


def test_each_head_of_each_layer_and_place_has_an_alpha_that_learns(task, batch):
    _, ours = stock_and_ours(task, attention_normalizer="entmax_alpha")
    learned = {name: x for name, x in ours.named_parameters() if name.endswith("pre_alpha")}
    assert {name.removesuffix(".normalizer.pre_alpha") for name in learned} == {
        f"{side}.layers.{layer}.{module}"
        for side, module in (("encoder", "self_attn"), ("decoder", "self_attn"), ("decoder", "encoder_attn"))
        for layer in range(2)
    }
    assert all(x.shape == (4,) for x in learned.values())
    before = {name: x.clone() for name, x in learned.items()}
    optimizer = torch.optim.SGD(ours.parameters(), lr=1.0)
    (logits(ours.train(), batch) * torch.randn(5, 8, len(task.target_dictionary))).sum().backward()
    optimizer.step()
    for name, x in learned.items():
        assert (x != before[name]).all(), name


def test_gradcheck_of_what_alphas_are_learned_from():
    torch.manual_seed(0)
    module = LearnedEntmax(3).double()
    module.pre_alpha.data = torch.tensor([-2.0, 0.0, 2.0], dtype=torch.float64)
    scores = torch.randn(2, 3, 4, 6, dtype=torch.float64, requires_grad=True)

    def of_both(x, pre_alpha):
        return torch.func.functional_call(module, {"pre_alpha": pre_alpha}, (x,))

    assert torch.autograd.gradcheck(of_both, (scores, module.pre_alpha))


@pytest.mark.parametrize("implementation", ["sparselib", "entmax"])
def test_a_learned_alpha_begins_as_entmax15_and_stays_above_one(implementation):
    options = {"attention_normalizer": "entmax_alpha", "attention_implementation": implementation}
    module = normalizer_of(Namespace(**options), 4)
    scores = 2 * torch.randn(3, 4, 5, 30)
    assert (module(scores) - entmax15(scores)).abs().max() < 1e-5
    module.pre_alpha.data.fill_(-100)
    assert module.half().alpha.tolist() == pytest.approx([SMALLEST_ALPHA] * 4)
    assert module(scores.half()).dtype == torch.float16


@pytest.mark.parametrize("name", PACKAGES)
def test_both_implementations_are_the_same_model(task, batch, name):
    options = ({"attention_normalizer": name, "attention_implementation": which} for which in ("sparselib", "entmax"))
    models = [stock_and_ours(task, **one)[1].eval() for one in options]
    real = batch[2] != task.source_dictionary.pad()
    with torch.no_grad():
        ours, theirs = (logits(model, batch)[real] for model in models)
    assert torch.allclose(ours, theirs, atol=1e-5)
    functions = [model.attention_controls["cross"].normalizer_of(1) for model in models]
    assert functions[0] != functions[1]
