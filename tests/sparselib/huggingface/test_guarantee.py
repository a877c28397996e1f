"""The promise is kept on simulated losses, and on the heads of a model over 200 random splits."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import made, text

from sparselib.huggingface import sparsify, use_attention
from sparselib.huggingface.gold import gold_rule
from sparselib.huggingface.guarantee import certified, last_certified, sequences_needed
from sparselib.huggingface.halves import Half, split
from sparselib.huggingface.heads import Setting
from sparselib.huggingface.layers import Layer, Measured, observed_layers
from sparselib.huggingface.learning import learn_projections
from sparselib.huggingface.tuning import choose
from sparselib.normalizers import Entmax

ALLOWED, CONFIDENCE = 0.1, 0.9


@pytest.mark.parametrize("spread", [0.02, 0.5, 1.0])
def test_what_misses_exactly_what_is_allowed_is_certified_as_rarely_as_promised(spread):
    """At the limit, whatever the distribution: 4,000 trials, of which a tenth may be wrong."""
    generator = torch.Generator().manual_seed(0)
    losses = (
        (torch.rand(4000, 300, generator=generator) < ALLOWED / spread).double() * spread
        if spread > ALLOWED
        else (ALLOWED + spread * (torch.rand(4000, 300, generator=generator, dtype=torch.float64) - 0.5))
    )
    wrong = certified(losses, ALLOWED, CONFIDENCE).double().mean().item()
    assert wrong <= 1 - CONFIDENCE + 3 * math.sqrt(0.09 / 4000)


def test_what_misses_nothing_is_certified_by_as_many_sequences_as_announced_and_no_fewer():
    needed = sequences_needed(0.05, 0.9)
    assert needed == 50
    assert certified(torch.zeros(needed), 0.05, 0.9)
    assert not certified(torch.zeros(needed - 1), 0.05, 0.9)


@pytest.mark.parametrize("size", [4, 8, 32])
def test_losses_of_one_document_that_are_all_alike_break_no_promise_if_it_is_one_bet(size):
    """Documents miss everything or nothing, at the limit; a bet per sequence fails in half to nine tenths of the trials."""
    generator = torch.Generator().manual_seed(0)
    of_documents = (torch.rand(4000, 60, generator=generator) < ALLOWED).double()
    losses = of_documents.repeat_interleave(size, dim=-1)
    half = Half([], torch.arange(60).repeat_interleave(size))
    wrong = certified(half.per_group(losses), ALLOWED, CONFIDENCE).double().mean().item()
    assert wrong <= 1 - CONFIDENCE + 3 * math.sqrt(0.09 / 4000)
    assert certified(losses, ALLOWED, CONFIDENCE).double().mean().item() > 0.4


def test_halves_are_shuffled_and_share_no_group():
    rows = torch.arange(60)
    batches = [{"input_ids": part[:, None], "positions": torch.zeros(1, 1)} for part in rows.split(7)]
    names = [f"document {row // 3}" for row in rows.tolist()]
    first, second = split(batches, names, 0, 0.5, 0.5)
    documents = [
        [int(row) // 3 for inputs in half.batches for row in inputs["input_ids"][:, 0]] for half in (first, second)
    ]
    assert sorted(documents[0] + documents[1]) == [row // 3 for row in rows.tolist()]
    assert not set(documents[0]) & set(documents[1])
    assert sorted(set(documents[0])) not in (list(range(10)), list(range(10, 20)))
    for half, own in zip((first, second), documents, strict=True):
        means = half.per_group(torch.tensor(own, dtype=torch.float64))
        assert sorted(means.tolist()) == sorted(set(own))
        assert means.tolist() != sorted(means.tolist())
        assert all(inputs["positions"].shape == (1, 1) for inputs in half.batches)
    again = split(batches, names, 0, 0.5, 0.5)[0]
    assert torch.equal(again.groups, first.groups)
    alone, _ = split(batches, None, 0, 0.5, 0.5)
    assert sorted(alone.groups.tolist()) == list(range(30))


def test_groups_are_checked_and_documents_are_counted():
    model = made("bert")
    with pytest.raises(ValueError, match="`groups` must have one entry per sequence, got 3 for 120 sequences"):
        sparsify(model, text(12), recall=0.9, groups=[1, 2, 3])
    with pytest.raises(
        ValueError, match=r"`groups` must leave at least 25 groups to calibrate with.* got 6 in the second half"
    ):
        sparsify(model, text(12), recall=0.9, groups=[number // 10 for number in range(120)])
    with pytest.raises(ValueError, match=r"`batches\[0\]\['attention_mask'\]` must have 10 rows or one, got 4"):
        sparsify(model, [{name: x if name == "input_ids" else x[:4] for name, x in text(1)[0].items()}], recall=0.9)
    report = sparsify(model, text(12), recall=0.9, groups=iter([number // 2 for number in range(120)])).report
    assert len(report.heads) == 8


DOCUMENTS = [number // 2 for number in range(60)]


@pytest.mark.parametrize(
    "groups",
    [
        torch.tensor(DOCUMENTS),
        list(torch.tensor(DOCUMENTS)),
        np.array(DOCUMENTS),
        [np.array(number) for number in DOCUMENTS],
        [float(number) for number in DOCUMENTS],
        [str(number) for number in DOCUMENTS],
        pd.Series(DOCUMENTS),
    ],
    ids=["tensor", "tensors", "array", "arrays", "floats", "texts", "series"],
)
def test_documents_are_the_same_however_they_are_named(groups):
    """Tensors of equal numbers have other hashes, so that each sequence was a document of its own."""
    batches = [{"input_ids": torch.arange(60)[:, None]}]
    expected, found = (split(batches, named, 0, 0.5, 0.5) for named in (DOCUMENTS, groups))
    for half, named in zip(expected, found, strict=True):
        assert torch.equal(half.groups, named.groups)


@pytest.mark.parametrize(
    "name", [float("nan"), None, [1], {"a": 1}, torch.tensor([1]), np.array([1, 2]), np.nan, pd.NA, pd.NaT], ids=repr
)
def test_what_names_no_document_is_refused(name):
    batches = [{"input_ids": torch.arange(60)[:, None]}]
    with pytest.raises(ValueError, match=r"`groups\[3\]` must name the document of a sequence"):
        split(batches, [*DOCUMENTS[:3], name, *DOCUMENTS[4:]], 0, 0.5, 0.5)


def test_bounds_that_hold_together_hold_so_over_2000_draws():
    """Of 72 heads at the limit, one by itself is certified wrongly in up to 10 % of the draws, some one nearly always."""
    generator = torch.Generator().manual_seed(0)
    losses = (torch.rand(2000, 72, 300, generator=generator) < ALLOWED).half()
    alone, together = (certified(losses, ALLOWED, level).any(1) for level in (CONFIDENCE, 1 - (1 - CONFIDENCE) / 72))
    assert alone.double().mean() > 0.9
    assert together.double().mean() <= 1 - CONFIDENCE + 2 * math.sqrt(0.09 / 2000)


def test_simultaneous_bounds_need_more_text_and_are_reported():
    model = made("bert")
    with pytest.raises(ValueError, match=r"`batches` must leave at least 46 sequences .* confidence 0.9875, got 30 in"):
        sparsify(model, text(6), recall=0.9, simultaneous=True)
    report = sparsify(model, text(12), recall=0.9, simultaneous=True, predictors=("window",)).report
    assert report.simultaneous
    assert "all bounds hold together with confidence 0.9" in str(report)
    alone = sparsify(model, text(12), recall=0.9, predictors=("window",)).report
    assert "each bound by itself holds with confidence 0.9" in str(alone)
    for one, other in zip(report.heads, alone.heads, strict=True):
        assert one.sparsity <= other.sparsity


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(0, 59), st.floats(0.01, 0.5))
def test_a_larger_loss_of_the_last_sequence_certifies_nothing_more(losses, place, allowed):
    """The capital falls with the loss of its own round; a bet may not depend on it."""
    worse = [*losses[:-1], 1.0]
    assert certified(torch.tensor(losses), allowed, 0.8) >= certified(torch.tensor(worse), allowed, 0.8)


def test_settings_are_tested_up_to_the_first_that_fails():
    good, bad = torch.zeros(60), torch.ones(60)
    assert last_certified(torch.stack([good, good, bad, good]), 0.05, 0.9) == 1
    assert last_certified(torch.stack([bad, good]), 0.05, 0.9) == -1


@pytest.fixture(scope="module")
def measured():
    """Losses and densities ``[S, H, N]`` of thresholds on one layer over 480 sentences, and the settings."""
    model = made("bert")
    control = use_attention(model, Entmax(1))
    layers = [Layer(), Layer()]
    rule = gold_rule("entmax:1.5")
    learn_projections(observed_layers(model, control, layers, rule, text(8, 20, seed=1)), layers, 4, 0)
    order = [
        Setting("dense"),
        *(Setting("distance", 3, threshold=2**place) for place in (*(x / 4 for x in range(20, -4, -1)),)),
    ]
    found = Measured()
    for observed in observed_layers(model, control, layers, rule, text(24, 20, seed=2)):
        found.add(layers[0], observed[0], [order] * 4)
    return found, order


def test_over_200_random_splits_heads_fall_below_the_target_as_rarely_as_promised(measured):
    """Choose on 120 sentences, calibrate on 120, look at the other 240; a sparser family would be a broken promise."""
    found, order = measured
    losses, densities = found.losses, found.densities
    below, tuned, together = [], [], []
    for seed in range(200):
        mixed = torch.randperm(losses.shape[-1], generator=torch.Generator().manual_seed(seed))
        chosen_on, calibrate, other = mixed[:120], mixed[120:240], mixed[240:]
        half = Measured([losses[..., chosen_on]], [densities[..., chosen_on]])
        (orders,) = choose([half], [[order] * 4], Half([], torch.arange(120)), 1 - ALLOWED, CONFIDENCE)
        places = torch.tensor([[order.index(one) for one in head] for head in orders]).T  # [S, H]
        ordered = losses.gather(0, places[..., None].expand(-1, -1, losses.shape[-1]))
        last = last_certified(ordered[..., calibrate], ALLOWED, CONFIDENCE)
        chosen = places.gather(0, last[None])[0]
        heads = torch.arange(4)
        below.append(losses[chosen, heads][:, other].mean(-1) > ALLOWED)
        tuned.append(densities[chosen, heads][:, other].mean().item())
        one = int(last_certified(losses[..., calibrate], ALLOWED, CONFIDENCE).amin())
        together.append(densities[one][:, other].mean().item())
    share = torch.stack(below).double().mean(0)
    assert (share <= 1 - CONFIDENCE + 3 * math.sqrt(0.09 / 200)).all(), share
    assert (
        sum(tuned) / 200 < sum(together) / 200 < 1
    )  # each head its own threshold, or one for all that suits the worst
