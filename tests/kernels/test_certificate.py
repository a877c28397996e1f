"""Certificates against dense attention in float64: no certified row misses an edge."""

import pytest
import torch
from dense import ALPHAS, KINDS, RULES, allowed_pairs, missed, oracle, random_inputs, random_mask
from interpreter import require_interpreter
from torch.utils._python_dispatch import TorchDispatchMode

from sparselib.kernels import BlockMask, pairs
from sparselib.kernels.block_operator import attend
from sparselib.kernels.bounds import KeyBlocks, threshold_error
from sparselib.kernels.certificate import certify


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_is_never_wrong(kind):
    """Test 10,000 rows of each kind; many are certified, and many miss an edge."""
    rows = certified = wrong = missing = 0
    for seed in range(8):
        for rule in RULES:
            alpha, dtype = ALPHAS[seed % 3], [torch.float32, torch.float64][seed % 2]
            q, k, v = random_inputs(kind, batch=2, heads=3, seed=seed, dtype=dtype)
            mask = random_mask(heads=3, density=0.9 if kind == "random" else 0.5, seed=seed)
            _, tau = attend(q, k, v, mask, alpha=alpha, **rule)
            certified_rows = certify(q, k, tau, mask, alpha=alpha, **rule).rows
            lost = missed(oracle(q, k, v, alpha=alpha, **rule)[1], mask, q, k)
            real = allowed_pairs(q, k, **rule).any(-1).expand_as(certified_rows)
            assert certified_rows[~real].all()
            rows, certified = rows + int(real.sum()), certified + int((certified_rows & real).sum())
            wrong, missing = wrong + int((certified_rows & lost).sum()), missing + int(lost.sum())
    assert rows > 10_000
    assert certified > rows / 20
    assert missing > rows / 20
    assert wrong == 0


@pytest.mark.parametrize(("offset", "edge"), [(1e-9, True), (-0.01, False)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_skipped_key_near_the_threshold(dtype, offset, edge):
    """The visited key has score 2, so tau = 0. The skipped key lies just above tau, or below it by more than the slack."""
    q = torch.ones(1, 1, 1, 1, dtype=dtype)
    k = torch.tensor([2.0, 2 * offset], dtype=dtype).view(1, 1, 2, 1)
    mask = BlockMask.from_dense(torch.tensor([[[[True, False]]]]), 1, (1, 2))
    _, tau = attend(q, k, k, mask, scale=1.0)
    assert certify(q, k, tau, mask, scale=1.0).rows.item() == (not edge)


def test_softmax_needs_every_block():
    q, k, v = random_inputs("random", n=64)
    mask = torch.ones(4, 4, dtype=torch.bool).tril().expand(2, 2, 4, 4).clone()
    mask[0, 0, 2, 0] = False
    mask = BlockMask.from_dense(mask, 16, 64)
    _, tau = attend(q, k, v, mask, alpha=1, causal=True)
    rows = certify(q, k, tau, mask, alpha=1, causal=True).rows
    assert not rows[0, 0, 32:48].any()
    assert int((~rows).sum()) == 16


def test_rows_without_a_visit():
    """Rows without a visit are not certified, except padding, which has no allowed key."""
    q, k, v = random_inputs("random", n=64)
    mask = BlockMask.from_dense(torch.zeros(1, 1, 4, 4, dtype=torch.bool), 16, 64)
    lengths = torch.tensor([20, 64])
    _, tau = attend(q, k, v, mask, lengths=lengths)
    rows = certify(q, k, tau, mask, lengths=lengths).rows
    assert torch.equal(rows, (torch.arange(64) >= lengths[:, None, None]).expand(2, 2, 64))


def test_a_dense_pass_is_certified():
    q, k, v = random_inputs("random", n=20)
    certificate = certify(q, k, attend(q, k, v)[1], None)
    assert (certificate.rows.all(), certificate.share, certificate.rounds) == (True, 1, 0)
    assert certificate.rows.shape == (2, 2, 20)


@pytest.mark.parametrize(
    ("rule", "share"),
    [
        ({}, 4 / 9),
        ({"causal": True}, 3 / 6),
        ({"lengths": torch.tensor([20, 0])}, 3 / 4),
        ({"lengths": torch.tensor([0, 0])}, 1),
    ],
    ids=str,
)
def test_share_of_the_allowed_blocks(rule, share):
    """The mask has the diagonal and one block above it, out of 3 x 3 blocks."""
    q, k, _ = random_inputs("random", n=40)
    dense = torch.eye(3, dtype=torch.bool)
    dense[0, 1] = True
    mask = BlockMask.from_dense(dense.view(1, 1, 3, 3), 16, 40)
    assert certify(q, k, torch.zeros(2, 2, 40), mask, **rule).share == pytest.approx(share)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 16])
def test_bounds_hold_and_are_tight_for_a_single_key(kind, size):
    q, k, _ = random_inputs(kind)
    scores = q @ k.mT
    padded = torch.nn.functional.pad(scores, (0, -129 % size), value=-torch.inf)
    true = padded.unflatten(-1, (-1, size)).amax(-1)
    bound = KeyBlocks.of(k, size, None).largest_scores(q.flatten(0, 1), torch.arange(4)).view_as(true)
    assert (bound >= true).all()
    if size == 1:
        torch.testing.assert_close(bound, true, rtol=1e-10, atol=1e-10 * scores.abs().max().item())


def test_bounds_ignore_padded_keys():
    _, k, _ = random_inputs("random", n=40)
    k[0, :, 20:] = 1e6
    padded, expected = KeyBlocks.of(k, 16, torch.tensor([20, 40])), KeyBlocks.of(k[:1, :, :20], 16, None)
    for name in ("centre", "radius", "box", "reach"):
        torch.testing.assert_close(getattr(padded, name)[:2, :2], getattr(expected, name))
        assert (getattr(padded, name)[:2, 2:] == 0).all()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", KINDS)
def test_threshold_errors_are_below_the_bound(kind, alpha):
    assert threshold_errors(kind, 600, 64, alpha) <= 0.25


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", KINDS)
def test_threshold_errors_of_triton_are_below_the_bound(kind, alpha, dtype):
    require_interpreter()
    assert threshold_errors(kind, 65, 16, alpha, dtype, batch=1, backend="triton") <= 0.25


def threshold_errors(kind, n, d, alpha, dtype=torch.float32, *, batch=2, **options):
    """Return the largest threshold error as a share of the bound that certificates use."""
    q, k, v = random_inputs(kind, n=n, d=d, batch=batch, dtype=dtype)
    tau = attend(q, k, v, alpha=alpha, precise=True, **options)[1]
    exact = attend(q.double(), k.double(), v.double(), alpha=alpha)[1]
    length = (alpha - 1) * q.double().norm(dim=-1).flatten(0, 1) * d**-0.5
    reach = k.double().norm(dim=-1).amax(-1).flatten()
    allowed = threshold_error(length, reach, torch.full((len(reach),), n), d, torch.float32)
    return ((tau - exact).flatten(0, 1).abs() / allowed).max()


class Largest(TorchDispatchMode):
    """Records the number of elements of the largest tensor."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.elements = max(self.elements, result.numel())
        return result


def test_no_tensor_of_all_pairs(monkeypatch):
    """Memory stays linear in n, and the chunk size does not change the result."""
    q, k, v = random_inputs("smooth", n=2048, batch=1, heads=1, dtype=torch.float32)
    mask = random_mask(2048, batch=1, heads=1, density=0.2)
    _, tau = attend(q, k, v, mask)
    unchunked = certify(q, k, tau, mask).rows
    monkeypatch.setattr(pairs, "CHUNK_PAIRS", 1 << 15)
    with Largest() as largest:
        assert torch.equal(certify(q, k, tau, mask).rows, unchunked)
    # Room for the inputs, their bounds or a chunk, but not for 2048 x 2048 pairs.
    assert largest.elements <= 2 * 2048 * 16


def test_errors_name_the_argument():
    q, k, v = random_inputs("random", n=40)
    _, tau = attend(q, k, v)
    with pytest.raises(ValueError, match=r"`tau` must have shape \(2, 2, 40\).*got \(2, 2, 39\)"):
        certify(q, k, tau[..., 1:], random_mask(40))
    with pytest.raises(ValueError, match=r"`block_mask` must have the lengths.*\(40, 40\), got \(64, 64\)"):
        certify(q, k, tau, random_mask(64))
    with pytest.raises(
        ValueError, match=r"`block_mask` must have the batch size and heads.*\(2, 2\), or 1, got \(2, 3\)"
    ):
        certify(q, k, tau, random_mask(40, heads=3))
