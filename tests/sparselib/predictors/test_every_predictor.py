"""What holds for every predictor: nothing padded or future, no influence of padding, no hidden randomness."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from drawing import drawn, drawn_in_turn

from replication.predictors.laws import broken_laws
from sparselib.forms import FORMS, form
from sparselib.predictors import (
    BigBird,
    Bucketed,
    Clustering,
    Distance,
    Hashing,
    Longformer,
    Needs,
    Nothing,
    Quantization,
    Routing,
    RowWise,
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


def test_it_obeys_the_laws(predictor):
    assert broken_laws(predictor) == []


@dataclass(frozen=True)
class Faulty(RowWise):
    """Breaks one law."""

    needs: ClassVar[Needs] = Needs()
    fault: str

    def predict(self, q, k, *, lengths=None, causal=False):
        if self.fault == "checks nothing":
            return torch.ones(*q.shape[:3], k.shape[2], dtype=torch.bool).tril()
        found = super().predict(q, k, lengths=lengths, causal=causal and self.fault != "future")
        if self.fault == "random":
            return found & (torch.rand(found.shape) < 0.5)
        if self.fault == "numbers":
            return found.int()
        if self.fault == "writes":
            q.data.zero_()
        if self.fault == "depends on lengths":
            return found & torch.tensor(lengths is None)
        return found & (q.sum() > 0) if self.fault == "reads padding" else found

    def pairs(self, rows):
        return rows.visible.expand(*rows.q.shape[:2], -1, -1) if rows.visible.ndim == 4 else rows.visible


@pytest.mark.parametrize(
    "fault",
    ["checks nothing", "future", "random", "numbers", "writes", "depends on lengths", "reads padding"],
)
def test_a_broken_law_is_named(fault):
    assert broken_laws(Faulty("none")) == []
    assert broken_laws(Faulty(fault)) != []


@pytest.mark.parametrize("name", [name for name, made in PREDICTORS.items() if isinstance(made, Bucketed)])
def test_predict_is_the_shared_buckets_of_assign(name):
    predictor = PREDICTORS[name]
    q, k = queries_and_keys(10)
    queries, keys = predictor.assign(q, k, [10, 6, 2])
    shared = torch.einsum("bhqc,bhkc->bhqk", queries.int(), keys.int()) > 0
    assert torch.equal(predictor.predict(q, k, lengths=[10, 6, 2]), shared)


@pytest.mark.parametrize("make", [Clustering, Routing])
@pytest.mark.parametrize("shape", [(1, 5, 4), (2, 5, 3)])
def test_centroids_must_match_heads_and_dimension(make, shape):
    with pytest.raises(ValueError, match="centroids"):
        make(torch.ones(shape)).predict(*queries_and_keys(6))
