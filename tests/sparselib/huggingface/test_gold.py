"""Which keys a head needs, against a loop over rows."""

import entmax as reference
import pytest
import torch

from sparselib.control import LayerCall
from sparselib.dense_attention import Scoring
from sparselib.huggingface.gold import gold_rule


@pytest.fixture
def call():
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 3, 9, 8, generator=generator) * 2 for _ in range(2))
    visible = torch.ones(2, 1, 9, 9, dtype=torch.bool).tril()
    visible[1, :, :, 6:] = False
    return LayerCall(0, q, k, visible, scoring=Scoring(0.6, bias=torch.randn(1, 3, 9, 9, generator=generator)))


def rows(call):
    """Batch entry, head, query, visible keys and their scores."""
    for b in range(2):
        for h in range(3):
            for i in range(9):
                keys = call.visible[b, 0, i].nonzero().flatten().tolist()
                scores = [call.q[b, h, i] @ call.k[b, h, j] * 0.6 + call.scoring.bias[0, h, i, j] for j in keys]
                yield b, h, i, keys, torch.stack(scores)


def assert_follows(call, name, needed):
    found = gold_rule(name)(call)
    for b, h, i, keys, scores in rows(call):
        assert found[b, h, i].nonzero().flatten().tolist() == [keys[j] for j in sorted(needed(scores))]


@pytest.mark.parametrize("alpha", [1.5, 2])
def test_entmax_is_the_support_of_the_entmax_package(call, alpha):
    def support(scores):
        return reference.entmax_bisect(scores, alpha, n_iter=60).gt(1e-9).nonzero().flatten().tolist()

    assert_follows(call, f"entmax:{alpha}", support)


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_mass_is_the_fewest_keys_that_have_it(call, share):
    def fewest(scores):
        weights, taken, total = scores.softmax(0), [], 0.0
        for key in weights.argsort(descending=True).tolist():
            if total < share:
                taken.append(key)
                total += weights[key].item()
        return taken

    assert_follows(call, f"mass:{share}", fewest)


@pytest.mark.parametrize(("share", "needed"), [(0.2, [0]), (0.5, [0, 1]), (0.51, [0, 1, 2]), (1, [0, 1, 2, 3])])
def test_of_equal_weights_the_first_keys_are_needed(share, needed):
    q = torch.zeros(1, 1, 1, 4)
    call = LayerCall(0, q, torch.zeros(1, 1, 5, 4), visible=torch.tensor([1, 1, 1, 1, 0]).bool().view(1, 1, 1, 5))
    assert gold_rule(f"mass:{share}")(call)[0, 0, 0].nonzero().flatten().tolist() == needed


@pytest.mark.parametrize("count", [1, 3, 100])
def test_top_are_the_largest_scores(call, count):
    assert_follows(call, f"top:{count}", lambda scores: scores.argsort(descending=True)[:count].tolist())


@pytest.mark.parametrize(
    "name", ["softmax:1", "mass", "mass:2", "mass:nan", "mass:0", "top:0", "top:1.5", "entmax:1", "entmax:x", ""]
)
def test_other_rules_are_refused_by_name(name):
    with pytest.raises(ValueError, match="gold"):
        gold_rule(name)
