"""What holds for every predictor: nothing padded or future, no influence of padding, no hidden randomness."""

import random
import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest
import torch
from drawing import drawn, drawn_in_turn

from sparselib.forms import FORMS, form
from sparselib.predictors import (
    BigBird,
    Bucketed,
    Clustering,
    Distance,
    Hashing,
    Longformer,
    Nothing,
    Quantization,
    Routing,
    TopK,
)

GUIDE = Path(__file__).parents[3] / "docs" / "add-a-predictor.md"


def example_of_the_guide():
    """The predictor that the guide adds."""
    source = re.search(r"```python\n(.*?)\n\nx = torch", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[1]
    exec(compile(source, str(GUIDE), "exec"), namespace := {"__name__": __name__})
    return namespace["LongKeys"](1.5)


def centers():
    return drawn(2, 5, 4, seed=1, dtype=torch.float64)


PREDICTORS = {
    "distance": Distance(2.0),
    "quantization": Quantization(3),
    "clustering": Clustering(centers(), 2),
    "clustering, rank-aligned": Clustering(centers(), 2, "rank_aligned"),
    "routing": Routing(centers()),
    "routing, one": Routing(centers(), membership="one"),
    "hashing": Hashing(6, rounds=2),
    "topk": TopK(3),
    "nothing": Nothing(),
    "longformer": Longformer(2),
    "bigbird": BigBird(2),
    "bigbird, official": BigBird(2, random_scope="official_plan"),
    "the guide's example": example_of_the_guide(),
    **{f"form {name}": form(name, 1 if name == "Window" else 4) for name in FORMS},
}


@pytest.fixture(params=PREDICTORS)
def predictor(request):
    return PREDICTORS[request.param]


def queries_and_keys(n, seed=0, dtype=torch.float64):
    return drawn_in_turn((3, 2, n, 4), (3, 2, n, 4), seed=seed, dtype=dtype)


def test_never_padded_and_never_future(predictor, case):
    assert not (case.predict(predictor) & ~case.looped(lambda b, h, i, j: True)).any()


def test_padding_changes_nothing(predictor, causal):
    """Whatever the padding holds, and however much of it there is."""
    lengths = [12, 5, 1]
    q, k = queries_and_keys(12)
    reference = predictor.predict(q, k, lengths=lengths, causal=causal)
    for garbage in (0.0, 1e30, torch.nan, -torch.inf):
        longer_q, longer_k = (torch.nn.functional.pad(x, (0, 0, 0, 7), value=garbage) for x in (q, k))
        for b, length in enumerate(lengths):
            longer_q[b, :, length:] = longer_k[b, :, length:] = garbage
        padded = predictor.predict(longer_q, longer_k, lengths=lengths, causal=causal)
        assert torch.equal(padded[:, :, :12, :12], reference)
        assert not padded[:, :, 12:].any()


def test_no_lengths_means_full_lengths(predictor):
    q, k = queries_and_keys(9)
    assert torch.equal(predictor.predict(q, k), predictor.predict(q, k, lengths=[9, 9, 9]))


def test_same_input_same_mask_and_global_generators_untouched(predictor):
    q, k = queries_and_keys(14)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    first, again = predictor.predict(q, k), predictor.predict(q, k)
    after = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    assert torch.equal(first, again)
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_takes_inputs_that_need_gradients_in_any_float_type_and_leaves_them_alone(predictor, dtype):
    q, k = (x.requires_grad_() for x in queries_and_keys(8, dtype=dtype))
    kept = q.detach().clone()
    mask = predictor.predict(q, k, lengths=[8, 8, 4])
    assert mask.dtype == torch.bool
    assert mask.shape == (3, 2, 8, 8)
    assert torch.equal(q, kept)


@pytest.mark.parametrize("name", [name for name, made in PREDICTORS.items() if isinstance(made, Bucketed)])
def test_predict_is_the_shared_buckets_of_assign(name):
    predictor = PREDICTORS[name]
    q, k = queries_and_keys(10)
    queries, keys = predictor.assign(q, k, [10, 6, 2])
    shared = torch.einsum("bhqc,bhkc->bhqk", queries.int(), keys.int()) > 0
    assert torch.equal(predictor.predict(q, k, lengths=[10, 6, 2]), shared)


def test_is_frozen(predictor):
    for name in [field.name for field in fields(predictor)]:
        with pytest.raises(FrozenInstanceError):
            setattr(predictor, name, 1)


@pytest.mark.parametrize(("name", "bad"), [("q", torch.nan), ("k", torch.inf)])
def test_refuses_values_that_are_not_finite(predictor, name, bad):
    q, k = queries_and_keys(6)
    (q if name == "q" else k)[1, 1, 2, 3] = bad
    with pytest.raises(ValueError, match=f"`{name}` must be finite"):
        predictor.predict(q, k)


@pytest.mark.parametrize("lengths", [[-1, 3, 3], [3, 3, 7], [3, 3]])
def test_refuses_wrong_lengths(predictor, lengths):
    with pytest.raises(ValueError, match="lengths"):
        predictor.predict(*queries_and_keys(6), lengths=lengths)


@pytest.mark.parametrize("shape", [(3, 6, 4), (2, 2, 6, 4), (3, 1, 6, 4), (3, 2, 6, 5)])
def test_refuses_mismatched_shapes(predictor, shape):
    q, _ = queries_and_keys(6)
    with pytest.raises(ValueError, match="`q` and `k`"):
        predictor.predict(q, torch.zeros(shape))


@pytest.mark.parametrize("make", [Clustering, Routing])
@pytest.mark.parametrize("shape", [(1, 5, 4), (2, 5, 3)])
def test_centroids_must_match_heads_and_dimension(make, shape):
    with pytest.raises(ValueError, match="centroids"):
        make(torch.ones(shape)).predict(*queries_and_keys(6))


@pytest.mark.parametrize("causal", [False, True])
def test_a_sentence_of_length_0_has_no_pair_and_changes_no_other(predictor, causal):
    q, k = queries_and_keys(6)
    found = predictor.predict(q, k, lengths=[0, 6, 4], causal=causal)
    assert not found[0].any()
    # Draws of a batch may depend on which sentences are in it, but not on what stands in the empty one.
    other = predictor.predict(q.index_fill(0, torch.tensor([0]), 7.0), k, lengths=[0, 6, 4], causal=causal)
    assert torch.equal(found, other)
