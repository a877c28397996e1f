"""The fairseq plugin against stock fairseq, and decoding under a mask against scoring under the same mask."""

from argparse import Namespace

import pytest
import torch

pytest.importorskip("sparselib.integrations.fairseq")
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from fairseq.sequence_generator import SequenceGenerator

from sparselib.integrations.fairseq.normalizers import PACKAGES, SMALLEST_ALPHA, LearnedEntmax, normalizer_of
from sparselib.integrations.fairseq.transformer import SparseTransformer, drop_words, sparse_transformer
from sparselib.masks import HEAD_COMBINATIONS
from sparselib.normalizers import entmax15
from sparselib.predictors import FORMS

WORDS = 40


@pytest.fixture(scope="module")
def task():
    dictionary = Dictionary()
    for word in range(WORDS):
        dictionary.add_symbol(f"w{word}")
    return Namespace(source_dictionary=dictionary, target_dictionary=dictionary)


def settings(**changes) -> Namespace:
    sizes = {
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in {"embed_dim": 32, "layers": 2, "attention_heads": 4, "ffn_embed_dim": 48}.items()
    }
    return Namespace(**sizes, share_all_embeddings=True, dropout=0.0, attention_dropout=0.0, **changes)


def stock_and_ours(task, **changes):
    args = settings()
    base_architecture(args)
    torch.manual_seed(3)
    stock = TransformerModel.build_model(args, task)
    args = settings(**{"attention_normalizer": "softmax"} | changes)
    sparse_transformer(args)
    ours = SparseTransformer.build_model(args, task)
    alphas = {name: x for name, x in ours.state_dict().items() if name.endswith("pre_alpha")}
    ours.load_state_dict(stock.state_dict() | alphas)
    return stock, ours


@pytest.fixture
def batch(task):
    """Five pairs of different lengths: source padded on the left, target on the right, as fairseq's collater does."""
    generator = torch.Generator().manual_seed(0)
    pad, eos = task.source_dictionary.pad(), task.source_dictionary.eos()
    source = torch.full((5, 9), pad)
    target = torch.full((5, 8), pad)
    for row, (src, tgt) in enumerate([(9, 8), (3, 5), (7, 2), (1, 8), (6, 6)]):
        words = torch.randint(4, 4 + WORDS, (src + tgt,), generator=generator)
        source[row, -src:] = words[:src]
        source[row, -1] = eos
        target[row, :tgt] = words[src:]
        target[row, 0] = eos
    return source, (source != pad).sum(1), target


def logits(model, batch, **arguments):
    return model(*batch, **arguments)[0]


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
    with torch.no_grad(), ours.attention_controls["encoder"].observing(lambda layer, *_: called.append(layer)):
        ours(*full)
    assert called == [0, 1]


def test_queries_are_seen_before_fairseq_scales_them(task, batch):
    _, ours = stock_and_ours(task)
    ours.eval()
    seen, expected = {}, []
    layer = ours.decoder.layers[0].self_attn
    layer.q_proj.register_forward_hook(lambda module, inputs, output: expected.append(output.clone()))
    with torch.no_grad(), ours.attention_controls["decoder"].observing(lambda n, q, k, v: seen.setdefault(n, q)):
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
        ({"attention_normalizer": "topk", "attention_implementation": "entmax"}, "not for topk"),
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
    places = {place for place, control in ours.attention_controls.items() if control.graph is not None}
    assert places == {"encoder", "decoder"} | ({"cross"} if name in ("Full", "Random", "Top-k") else set())
    logits(ours.train(), batch).square().sum().backward()
    assert all(layer.self_attn.k_proj.weight.grad.isfinite().all() for layer in ours.encoder.layers)
    assert ours.decoder.layers[0].self_attn.v_proj.weight.grad.abs().max() > 0


@pytest.mark.parametrize("name", ["strided", "fixed"])
def test_a_factorised_decoder_attends_by_its_parts_in_turn(task, batch, name):
    options = {"factorised_pattern": name, "factorised_stride": 3, "factorised_summary": 2 if name == "fixed" else None}
    ours, _ = restricted(task, options)
    masks_of = {}
    control = ours.attention_controls["decoder"]
    with control.observing(lambda layer, q, k, mask: masks_of.update({layer: mask})), torch.no_grad():
        logits(ours, batch)
    assert {place for place, one in ours.attention_controls.items() if one.graph is not None} == {"decoder"}
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
        ({"attention_form": "Window", "attention_budget": 0}, "k must be at least 1"),
        ({"factorised_pattern": "strided"}, "--factorised-stride"),
        ({"factorised_pattern": "strided", "factorised_stride": 0}, "stride must be at least 1"),
        ({"factorised_pattern": "fixed", "factorised_stride": 4}, "summary: fixed needs one"),
        (RESTRICTED["Window"] | RESTRICTED["strided, merged"], "exclude each other"),
    ],
)
def test_options_of_forms_that_do_not_fit_are_named(task, options, named):
    with pytest.raises(ValueError, match=named):
        restricted(task, options)
