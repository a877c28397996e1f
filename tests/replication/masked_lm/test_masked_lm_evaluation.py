"""Perplexity, n-gram baselines, extracted graphs and replaced graphs, each against a slower and plainer way."""

import random
from collections import Counter

import numpy as np
import pytest
import tiny
import torch
from bigrams import kneser_ney

from replication.graphs.grids import Member
from replication.graphs.replaced import ModelStudents, Replacements
from replication.graphs.shards import open_graphs
from replication.masked_lm.evaluation import (
    MaskedText,
    baseline_cross_entropies,
    cross_entropy,
    evaluate_replaced,
    extract_graphs,
    mask_text,
)
from replication.masked_lm.model import IGNORED, for_evaluation
from sparselib.huggingface import use_attention
from sparselib.masks.combine import combine
from sparselib.metrics import sparsity
from sparselib.predictors import Distance
from sparselib.projections import Projection

N, HEADS = tiny.LENGTH, 2


@pytest.fixture(scope="module")
def text():
    return tiny.text()


@pytest.fixture(scope="module")
def masked(text) -> MaskedText:
    tokenizer, input_ids = text
    return mask_text(input_ids[:10], tokenizer, 0.3, seed=0)


@pytest.fixture
def peaked(text):
    model = tiny.peaked(text[0])
    return model, use_attention(model)


def test_a_model_for_evaluation_gives_what_it_gave_and_has_gradients(peaked, masked):
    model, _ = peaked
    with torch.no_grad():
        before = model(masked.inputs).logits
    for_evaluation(model)
    with torch.no_grad():
        torch.testing.assert_close(model(masked.inputs).logits, before, rtol=1e-5, atol=1e-5)
    model(masked.inputs).logits.sum().backward()
    assert all(weight.grad.any() for name, weight in model.named_parameters() if name.endswith("dense.weight"))


def projections(layers: int = 2, seed: int = 0) -> list[Projection]:
    generator = torch.Generator().manual_seed(seed)
    return [Projection(torch.randn(HEADS, 8, 3, generator=generator), torch.zeros(HEADS, 3)) for _ in range(layers)]


def replaced(model, control, masked, members, windows=(0,), global_tokens="none", layers=2, batch_size=4):
    centroids = [{} for _ in range(layers)]
    replacements = Replacements(
        {0: ModelStudents(projections(layers), centroids)},
        [(member, list(windows)) for member in members],
        global_tokens,
    )
    table, _ = evaluate_replaced(model, control, masked, replacements, batch_size)
    return table.set_index(["method", "window"])


def graphs_of(model, control, masked, folder, layer=0):
    """The stored graphs of one layer, as one batch."""
    extract_graphs(model, control, masked.inputs, torch.arange(len(masked.inputs)), folder, batch_size=4)
    with open_graphs(folder / f"layer{layer:02}.safetensors") as graphs:
        return graphs.batch(0, len(graphs))


@pytest.mark.parametrize("batch_size", [4, 10, 64])
def test_cross_entropy_is_the_mean_over_masked_places(peaked, masked, batch_size):
    model, _ = peaked
    losses = []
    with torch.no_grad():
        for inputs, labels in zip(masked.inputs, masked.labels, strict=True):
            logits = model(inputs[None]).logits[0]
            losses += [-logits[i].log_softmax(-1)[label].item() for i, label in enumerate(labels) if label != IGNORED]
    assert cross_entropy(model, masked, batch_size) == pytest.approx(np.mean(losses), abs=1e-5)


def test_a_batch_without_a_masked_place_adds_nothing(peaked, masked):
    labels = torch.cat([masked.labels, torch.full((1, N), IGNORED)])
    more = MaskedText(torch.cat([masked.inputs, masked.inputs[:1]]), labels, torch.cat([masked.input_ids] * 2)[:11])
    assert cross_entropy(peaked[0], more, 1) == pytest.approx(cross_entropy(peaked[0], masked, 1))


def test_masking_is_fixed_by_its_seed_and_touches_no_global_generator(text):
    tokenizer, input_ids = text
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    first, again, other = (mask_text(input_ids, tokenizer, 0.15, seed) for seed in (1, 1, 2))
    after = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.labels, again.labels)
    assert not torch.equal(first.labels, other.labels)
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_masking_is_berts(text, share):
    """The share asked for, never of special tokens: 80 % masked, 10 % random, 10 % kept; all others as they are."""
    tokenizer, input_ids = text
    many = input_ids.repeat(20, 1)
    masked = mask_text(many, tokenizer, share, seed=0)
    chosen = masked.labels != IGNORED
    special = torch.isin(many, torch.tensor(tokenizer.all_special_ids))
    assert not chosen[special].any()
    assert chosen[~special].float().mean().item() == pytest.approx(share, abs=0.01)
    assert torch.equal(masked.input_ids, many.long())
    assert torch.equal(masked.labels[chosen], masked.input_ids[chosen])
    assert torch.equal(masked.inputs[~chosen], masked.input_ids[~chosen])
    hidden = masked.inputs[chosen] == tokenizer.mask_token_id
    kept = masked.inputs[chosen] == masked.labels[chosen]
    assert hidden.float().mean().item() == pytest.approx(0.8, abs=0.02)
    assert kept.float().mean().item() == pytest.approx(0.1, abs=0.02)


def test_baselines_predict_the_masked_tokens_from_true_ones(text, masked):
    tokenizer, input_ids = text
    train = input_ids[10:]
    counts = Counter(train.flatten().tolist())
    bigram = kneser_ney(train.tolist(), len(tokenizer))
    unigrams, bigrams = [], []
    for true, labels in zip(masked.input_ids.tolist(), masked.labels.tolist(), strict=True):
        for place, label in enumerate(labels):
            if label != IGNORED:
                unigrams.append((counts[label] + 0.5) / (train.numel() + 0.5 * len(tokenizer)))
                bigrams.append(bigram(true[place - 1], label))
    nats = baseline_cross_entropies(train, masked, len(tokenizer))
    assert nats["unigram"] == pytest.approx(-np.log(unigrams).mean())
    assert nats["interpolated bigram"] == pytest.approx(-np.log(bigrams).mean())


def test_extracted_are_the_queries_and_keys_of_the_chosen_sequences(text, peaked, tmp_path):
    _, input_ids = text
    model, control = peaked
    sequence = torch.tensor([3, 7, 8, 20, 21])
    extract_graphs(model, control, input_ids, sequence, tmp_path, batch_size=2)
    projected = {}
    for layer, module in enumerate(model.roberta.encoder.layer):
        for side in ("query", "key"):
            linear = getattr(module.attention.self, side)
            linear.register_forward_hook(lambda _, x, y, at=(layer, side): projected.__setitem__(at, y.detach()))
    model(input_ids[sequence])
    for layer in range(2):
        with open_graphs(tmp_path / f"layer{layer:02}.safetensors") as graphs:
            assert torch.equal(graphs.sequence, sequence)
            assert graphs.lengths.tolist() == [N] * 5
            assert not graphs.causal
            batch = graphs.batch(0, 5)
        for side, stored in (("query", batch.q), ("key", batch.k)):
            wanted = projected[layer, side].unflatten(-1, (HEADS, 8)).transpose(1, 2)
            torch.testing.assert_close(stored, wanted, atol=1e-5, rtol=1e-5)


def test_the_full_graph_and_the_gold_graph_give_the_models_own_cross_entropy(peaked, masked):
    """Proposition 1, sparse-consistency."""
    own = cross_entropy(peaked[0], masked, 4)
    table = replaced(*peaked, masked, [])
    assert table.loc[("full", 0), "nats"] == pytest.approx(own, abs=1e-6)
    assert table.loc[("gold graph", 0), "nats"] == pytest.approx(own, abs=1e-5)
    assert table["perplexity"].to_numpy() == pytest.approx(np.exp(table["nats"].to_numpy()))
    assert table.loc[("full", 0), "sparsity"] == 0


def test_the_gold_graphs_sparsity_is_that_of_the_extracted_graphs(peaked, masked, tmp_path):
    sparsities = []
    for layer in range(2):
        gold = graphs_of(*peaked, masked, tmp_path, layer).gold
        sparsities += [1 - int(gold[b, h].sum()) / N**2 for b in range(len(gold)) for h in range(HEADS)]
    assert 0.1 < np.mean(sparsities) < 0.95
    table = replaced(*peaked, masked, [])
    assert table.loc[("gold graph", 0), "sparsity"] == pytest.approx(np.mean(sparsities), abs=1e-6)


@pytest.mark.parametrize("member", [Member("window", "Nothing"), Member("near", "Distance", {"threshold": 1.0})])
def test_a_window_over_everything_is_the_full_graph(peaked, masked, member):
    table = replaced(*peaked, masked, [member], windows=(0, 2 * N))
    measures = ["nats", "sparsity"]
    assert table.loc[(member.method, 2 * N), measures].tolist() == table.loc[("full", 0), measures].tolist()
    assert table.loc[(member.method, 0), "nats"] != pytest.approx(table.loc[("full", 0), "nats"], abs=1e-3)


def test_a_member_is_measured_on_its_own_graph(text, masked, tmp_path):
    """In a model of one layer nothing is perturbed yet, so that its graph can be made beforehand."""
    model = tiny.peaked(text[0], num_hidden_layers=1)
    control = use_attention(model)
    batch = graphs_of(model, control, masked, tmp_path)
    project = projections(1)[0]
    graph = combine(Distance(4.0).predict(project(batch.q), project(batch.k)), 3, "first_last")
    with control.restricted_to(lambda *_: graph):
        nats = cross_entropy(model, masked, 64)
    member = Member("near", "Distance", {"threshold": 4.0})
    found = replaced(model, control, masked, [member], (3,), "first_last", layers=1, batch_size=3).loc[("near", 3)]
    assert found["nats"] == pytest.approx(nats, abs=1e-5)
    assert found["sparsity"] == pytest.approx(sparsity(graph).mean().item(), abs=1e-6)
    assert 0.05 < found["sparsity"] < 0.95


def test_no_key_at_all_is_a_sparsity_of_one(peaked, masked):
    table = replaced(*peaked, masked, [Member("window", "Nothing")], windows=(0, 1))
    assert table.loc[("window", 0), "sparsity"] == 1
    assert table.loc[("window", 1), "sparsity"] == pytest.approx(1 - 1 / N)


def test_the_model_attends_freely_again_afterwards(peaked, masked):
    before = cross_entropy(peaked[0], masked, 4)
    replaced(*peaked, masked, [Member("window", "Nothing")])
    assert cross_entropy(peaked[0], masked, 4) == before
