"""Passes over blocks that are certified give the logits of full attention; what a skipped block changes is not certified."""

import pytest
import torch
from test_huggingface_generation import MODELS

from sparselib import Entmax
from sparselib.control import CertifiedRows
from sparselib.huggingface import use_attention
from sparselib.kernels import BlockMask

SIZE, PROMPT, NEW = 4, 25, 12


def made(name, seed):
    """A model whose scores are far apart, so that entmax leaves out most keys."""
    torch.manual_seed(seed)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.2)
    return model


def near_the_largest(margin, causal):
    """A block graph: all blocks with a score at most `margin` below the largest of their block of queries, per head."""

    def blocks(layer, q, k, lengths):
        keys = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
        scores = q @ keys.mT * q.shape[-1] ** -0.5
        m, n = scores.shape[-2:]
        if causal and m > 1:
            scores = scores.masked_fill(~torch.ones(m, n, dtype=torch.bool).tril(n - m), -torch.inf)
        rows = SIZE if m > 1 else 1
        padded = torch.nn.functional.pad(scores, (0, -n % SIZE, 0, -m % rows), value=-torch.inf)
        largest = padded.unflatten(-1, (-1, SIZE)).amax(-1).unflatten(2, (-1, rows))
        chosen = (largest >= padded.amax(-1).unflatten(2, (-1, rows))[..., None] - margin) & largest.isfinite()
        return BlockMask.from_dense(chosen.any(3), (rows, SIZE), (m, n))

    return blocks


def generated(model, **settings):
    """Return the logits of each new word, ``[B, words, vocabulary]``."""
    ids = torch.randint(5, 50, (2, PROMPT), generator=torch.Generator().manual_seed(0))
    found = model.generate(
        ids,
        max_new_tokens=NEW,
        min_new_tokens=NEW,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
        **settings,
    )
    return torch.stack(found.logits, 1)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_words_up_to_the_first_uncertified_pass_have_the_logits_of_full_attention(name, cache):
    certified, all_passes = 0, 0
    for seed, margin in ((0, 4.0), (1, 4.0), (2, 5.0), (3, 2.0)):
        model = made(name, seed)
        control = use_attention(model, Entmax(1.5))
        expected = generated(model, cache_implementation=cache)
        with control.visiting(near_the_largest(margin, causal=True), certify=True) as found:
            logits = generated(model, cache_implementation=cache)
        passes = torch.stack(found.passes, 1)
        assert passes.shape == (2, NEW)
        exact = passes.cummin(1).values
        torch.testing.assert_close(logits[exact], expected[exact], rtol=1e-4, atol=1e-4)
        certified, all_passes = certified + int(exact.sum()), all_passes + exact.numel()
    assert 0.1 * all_passes < certified < 0.9 * all_passes


@pytest.mark.parametrize("name", ["gpt2", "llama", "marian"])
def test_a_certified_pass_is_that_of_full_attention(name):
    """The prompt alone, for which causal, bidirectional and cross-attention visit many queries, one source being shorter."""
    shares = []
    for seed, margin in ((0, 3.0), (1, 2.0), (2, 0.1)):
        model = made(name, seed)
        control = use_attention(model, Entmax(1.5))
        inputs = {"input_ids": torch.randint(5, 50, (2, 24), generator=torch.Generator().manual_seed(1))}
        inputs["attention_mask"] = (torch.arange(24) < torch.tensor([[24], [15]])).long()
        if name == "marian":
            inputs["decoder_input_ids"] = inputs["input_ids"][:, :9]
        blocks = {causal: near_the_largest(margin, causal) for causal in (False, True)}
        with torch.no_grad():
            expected = model(**inputs).logits
            graph = (
                (lambda layer, *call, blocks=blocks: blocks[layer in (2, 4)](layer, *call))
                if name == "marian"
                else blocks[True]
            )
            with control.visiting(graph, certify=True) as found:
                logits = model(**inputs).logits
        rows = [row.flatten(1, 1).all(1) for _, row in found.calls]  # [B, Q] by call
        shares += [row.float().mean().item() for row in rows]
        whole = torch.stack([row.all(1) for row in rows]).all(0)
        assert len(found.passes) == 1
        assert torch.equal(found.passes[0], whole)
        real = whole[:, None] & (
            torch.ones_like(logits[..., 0]).bool() if name == "marian" else inputs["attention_mask"].bool()
        )
        torch.testing.assert_close(logits[real], expected[real], rtol=1e-4, atol=1e-4)
    assert 0.1 < sum(shares) / len(shares) < 1


def test_softmax_is_certified_only_where_all_blocks_are_visited():
    model = made("llama", 0)
    control = use_attention(model, Entmax(1))
    for graph, expected in ((lambda *call: None, True), (near_the_largest(0.5, True), False)):
        with control.visiting(graph, certify=True) as found:
            generated(model)
        assert all(passes.tolist() == [expected, expected] for passes in found.passes)


def test_rules_of_tokens_are_not_certified():
    """Padding on the left is such a rule."""
    model = made("llama", 0)
    control = use_attention(model, Entmax(1.5))
    mask = (torch.arange(10) >= torch.tensor([[0], [3]])).long()
    with torch.no_grad(), control.visiting(lambda *call: None, certify=True) as found:
        model(input_ids=torch.ones(2, 10, dtype=torch.long), attention_mask=mask)
    assert not any(rows.any() for _, rows in found.calls)


def test_without_certify_nothing_is_collected_and_a_recomputation_adds_nothing():
    model = made("llama", 0)
    control = use_attention(model, Entmax(1.5))
    ids = torch.ones(1, 10, dtype=torch.long)
    with control.visiting(lambda *call: None) as found:
        model(input_ids=ids)
    assert found is None
    model.train().gradient_checkpointing_enable()
    with control.visiting(lambda *call: None, certify=True) as found:
        model(input_ids=ids, use_cache=False).logits.sum().backward()
    assert [layer for layer, _ in found.calls] == [0, 1]


def test_a_compiled_model_certifies_the_same_rows():
    model = made("llama", 0)
    control = use_attention(model, Entmax(1.5))
    inputs = {"input_ids": torch.arange(5, 30)[None], "use_cache": False}
    found = []
    with torch.no_grad():
        for run in (model, torch.compile(model, backend="eager")):
            with control.visiting(near_the_largest(1.0, causal=True), certify=True) as rows:
                run(**inputs)
            found.append(rows.calls)
        torch.testing.assert_close(found[1], found[0])


def test_a_pass_starts_where_layers_start_again():
    rows = torch.tensor([True, False]).view(2, 1, 1)
    found = CertifiedRows([(0, rows), (1, ~rows | True), (0, ~rows), (1, ~rows), (1, rows)])
    assert [x.tolist() for x in found.passes] == [[True, False], [False, True], [True, False]]
