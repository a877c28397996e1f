"""Perplexity and time of a model that visits blocks: against dense masks of the same blocks, and by a clock that counts."""

from itertools import count

import numpy as np
import pytest
import tiny
import torch
from drawing import drawn

from replication.masked_lm.blocks import Variant, evaluate_blocks, time_blocks, variants
from replication.masked_lm.evaluation import cross_entropy, mask_text, sequence_losses
from sparselib.blocks.chunks import Chunks
from sparselib.control import TokenPairs
from sparselib.huggingface import use_attention
from sparselib.projections import Projection

N, HEADS, SIZE, COUNTS, CLUSTERS = tiny.LENGTH, 2, 2, [1, 2, 3], [2, 3]
CHUNKS = Chunks(SIZE)
POINT = ["method", "count", "clusters"]


@pytest.fixture(scope="module")
def setting():
    tokenizer, input_ids = tiny.text()
    model = tiny.peaked(tokenizer)
    return model, use_attention(model), mask_text(input_ids[:8], tokenizer, 0.3, seed=0)


def chosen(model, seed=0, chunks=CHUNKS):
    generator = torch.Generator().manual_seed(seed)
    projections = [Projection(torch.randn(HEADS, 8, 3, generator=generator), torch.zeros(HEADS, 3)) for _ in range(2)]
    centroids = [
        {f"kmeans-{c}": torch.randn(HEADS, c, 3 * chunks.size, generator=generator) for c in CLUSTERS} for _ in range(2)
    ]
    return list(variants(model, N, chunks, COUNTS, CLUSTERS, "sq_euclidean", projections, centroids, seed))


@pytest.fixture(scope="module")
def table(setting):
    model, control, text = setting
    found, _ = evaluate_blocks(model, control, text, CHUNKS, chosen(model), 4, sequence_losses(model, text, 4))
    return found.set_index(POINT)


def test_every_method_is_there_at_every_k_that_leaves_a_choice(table):
    """Eight blocks: with window and global blocks, K = 3 could be all of them."""
    expected = {("full", 8, 0)}
    for k in (1, 2):
        expected |= {("sparsefinder-v1", k, 0), ("bigbird", k, 0), ("bigbird-softmax", k, 0)}
        expected |= {("sparsefinder-v2", k, c) for c in CLUSTERS}
    assert set(table.index) == expected
    assert len(table) == len(expected)
    assert (table["alpha"] == [1.0 if method == "bigbird-softmax" else 1.5 for method, *_ in table.index]).all()
    assert not table.isna().any().any()


def test_full_is_the_model_itself(setting, table):
    model, _, text = setting
    row = table.loc[("full", 8, 0)]
    assert row["nats"] == pytest.approx(cross_entropy(model, text, 4), abs=1e-6)
    assert row[["recall", "density", "attended"]].tolist() == [1, 1, 8]
    assert table["perplexity"].to_numpy() == pytest.approx(np.exp(table["nats"].to_numpy()))


def test_a_variant_is_measured_on_its_own_blocks(setting, table):
    """The same cross-entropy with a mask of token pairs, and the same counts from the dense masks of the blocks."""
    model, control, text = setting
    for variant in chosen(model)[1:]:
        if variant.alpha == 1:
            continue
        found = []

        def dense(call, variant=variant, found=found):
            blocks = variant.graph(call.layer, call.q, call.k, None).to_dense().expand(len(call.q), -1, -1, -1)
            found.append(blocks.double().mean().item())
            return blocks.repeat_interleave(SIZE, 2).repeat_interleave(SIZE, 3)

        with control.restricted_to(dense):
            nats = cross_entropy(model, text, 4)
        row = table.loc[(variant.method, variant.count, variant.clusters)]
        assert row["nats"] == pytest.approx(nats, abs=1e-5)
        assert row["density"] == pytest.approx(np.mean(found), abs=1e-6)
        assert row["attended"] == pytest.approx(8 * row["density"])
        assert 0 < row["recall"] <= 1


def test_bigbird_keeps_its_blocks_and_softmax_visits_the_same(setting, table):
    model, _, _ = setting
    q = drawn(1, HEADS, N, 8)
    first, second = (
        [variant.graph(layer, x, x, None).to_dense() for layer in range(2)]
        for x in (q, 2 * q)
        for variant in chosen(model)
        if variant.method == "bigbird" and variant.count == 1
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first[0], first[1])
    entmax, softmax = (table.loc[(method, 1, 0)] for method in ("bigbird", "bigbird-softmax"))
    assert entmax["density"] == softmax["density"]
    assert entmax["nats"] != pytest.approx(softmax["nats"], abs=1e-4)


PARTS = ["prediction_seconds", "attention_seconds", "model_seconds"]


def test_every_part_of_every_variant_is_timed_per_sequence(setting, monkeypatch):
    """By a clock that ticks once per reading, every work lasts one tick, shared by the sequences of the batch."""
    model, control, text = setting
    ticks = count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))
    table = time_blocks(model, control, text.inputs[:4], CHUNKS, chosen(model), 3)
    assert (table[PARTS] == 0.25).all().all()
    assert list(table["method"].unique()) == [
        "full", "sparsefinder-v1", "sparsefinder-v2", "bigbird", "bigbird-softmax", "full-kernel",
    ]  # fmt: skip
    assert not table.duplicated(POINT).any()


def test_what_is_timed_is_the_variant(setting, monkeypatch):
    """Prediction and the whole model ask its graph once per layer, the attention alone does not."""
    model, control, text = setting
    asked, counts = [], {}
    graph = chosen(model)[1].graph
    variant = Variant("watched", 1, 0, 1.5, lambda *arguments: asked.append(arguments[0]) or graph(*arguments))

    def repeated_seconds(works, repeats, device):
        for key, work in works.items():
            asked.clear()
            work()
            counts[key] = list(asked)
        return {key: [1.0] for key in works}

    monkeypatch.setattr("replication.masked_lm.blocks.repeated_seconds", repeated_seconds)
    time_blocks(model, control, text.inputs[:1], CHUNKS, [variant], 1)
    assert [counts[0, part] for part in PARTS] == [[0, 1], [], [0, 1]]


def test_the_model_attends_freely_again_afterwards(setting, table):
    _, control, _ = setting
    assert control.mode == TokenPairs()
