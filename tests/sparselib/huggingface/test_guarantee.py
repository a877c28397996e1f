"""The promise is kept on simulated losses, and on the heads of a model over 200 random splits."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import made, text

from sparselib.huggingface import use_attention
from sparselib.huggingface.calibration import _choose
from sparselib.huggingface.gold import gold_rule
from sparselib.huggingface.guarantee import certified, last_certified, sequences_needed
from sparselib.huggingface.heads import Setting
from sparselib.huggingface.layers import Layer, Measured, observed_layers
from sparselib.huggingface.learning import learn_projections
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
        choose, calibrate, other = mixed[:120], mixed[120:240], mixed[240:]
        half = Measured([losses[..., choose]], [densities[..., choose]])
        (orders,) = _choose([half], [[order] * 4], 1 - ALLOWED, CONFIDENCE)
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
