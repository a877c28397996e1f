"""Rules of benchmarks/decoder_selection.py that no other place has: what they bound holds on random queries and keys."""

import sys

import pytest
import torch

from replication.files.paths import ROOT
from replication.retrofit.rivals import Quest
from sparselib.masks import combine

sys.path.append(str(ROOT / "benchmarks"))
from decoder_selection import WINDOW, NormalPages, SampledKeys

N = 512


@pytest.fixture(scope="module")
def inputs():
    generator = torch.Generator().manual_seed(0)
    return [0.9 * torch.randn(1, 4, N, 16, generator=generator) for _ in range(2)]


def test_sums_of_sampled_weights_are_certain_to_the_error(inputs):
    q, k = inputs
    heavy = combine(Quest(16, 1).predict(q, k, causal=True), WINDOW, "first", causal=True)
    visible = torch.ones(N, N, dtype=torch.bool).tril()
    weights = (q @ k.mT / 4).exp() * visible
    computed = []
    for error in (0.3, 0.1):
        pairs = SampledKeys(error, pages=1).predict(q, k, causal=True)
        assert not (pairs & ~visible).any()
        assert not (heavy & ~pairs).any()
        sample = pairs & ~heavy
        mean = (weights * sample).sum(-1) / sample.sum(-1).clamp_min(1)
        found = (weights * heavy).sum(-1) + (visible & ~heavy).sum(-1) * mean
        wrong = (found / weights.sum(-1) - 1).abs()[..., N // 2 :] > error
        assert wrong.float().mean() < 0.2  # at most a tenth in the limit; the variance is estimated from few keys
        computed.append(pairs.sum())
    assert computed[0] < computed[1]


def test_pages_are_ranked_by_the_quantile_of_their_largest_score(inputs):
    q, k = inputs
    found = NormalPages(3).predict(q, k, causal=True)[0]
    for head, query in ((0, 100), (3, 511)):
        bounds = {}
        for page in range(query // 16):
            keys = k[0, head, 16 * page : 16 * page + 16]
            variance = (q[0, head, query].square() * keys.var(0, correction=0)).sum()
            mean = q[0, head, query] @ keys.mean(0)
            bounds[page] = torch.distributions.Normal(mean, variance.sqrt()).icdf(torch.tensor(0.99 ** (1 / 16))).item()
        best = sorted(bounds, key=bounds.get)[-3:]
        expected = torch.zeros(N // 16, dtype=torch.bool).index_fill(0, torch.tensor(best), True)
        assert torch.equal(found[head, query], expected.repeat_interleave(16))
