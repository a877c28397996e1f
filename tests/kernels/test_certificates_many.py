"""Certificates over as many rows as one asks for: ``ROWS`` in the environment; `make test-certificates` asks for a million.

Everything is drawn: structure, size of scores from 1e-8 to 1e4, ties, keys just above and below what would join a row, alpha,
dtype, which blocks are visited, lengths, causality, one key that is NaN.
"""

import os
from itertools import count

import torch
from dense import ALPHAS, KINDS, allowed_pairs, drawn, drawn_mask, missed, oracle

from sparselib.kernels.certificate import certify
from sparselib.kernels.operator import attend

ROWS = int(os.environ.get("ROWS", "10000"))
SIZES = [1e-8, 1e-3, 1.0, 30.0, 1e4]
N = 129


def problem(seed: int):
    """q, k, v, the blocks to visit, and the rules."""
    rng = torch.Generator().manual_seed(seed)

    def choice(values):
        return values[int(torch.randint(len(values), (), generator=rng))]

    kind, size = choice([*KINDS, "ties", "near"]), choice(SIZES)
    dtype = choice([torch.float32, torch.float64])
    # A block of one key has the tightest bound.
    block = choice([1, 4, 16])
    mask = drawn_mask(N, block=block, density=choice([0.1, 0.5, 0.9]), seed=seed)
    alpha = choice(ALPHAS)
    q, k, v = drawn(kind, n=N, seed=seed, dtype=torch.float64)
    if kind == "ties":  # whole numbers of which many are equal, and with them scores
        q, k = q.round(), k.round()
    q = q * size
    if kind == "near":
        k = just_beside(q, k, v, mask, alpha, rng, block)
    rule = {"causal": choice([False, True]), "lengths": choice([None, torch.tensor([100, 0]), torch.tensor([129, 37])])}
    return (
        [x.to(dtype) for x in (q, k, v)],
        mask,
        alpha,
        {key: value for key, value in rule.items() if value is not None},
    )


def just_beside(q, k, v, mask, alpha, rng, block):
    """Keys of which one, in a block that a query skips, has the score at which it would join, or nearly: the hardest case."""
    scale = q.shape[-1] ** -0.5
    tau = attend(q, k, v, mask, alpha=alpha)[1]
    visited = mask.to_dense()
    for batch in range(len(q)):
        for head in range(q.shape[1]):
            skipped = (~visited[batch, head]).nonzero().tolist()
            if skipped:
                row, column = skipped[int(torch.randint(len(skipped), (), generator=rng))]
                query, at = q[batch, head, block * row], tau[batch, head, block * row]
                factor = 1 + 10.0 ** -float(torch.randint(2, 15, (), generator=rng)) * (-1) ** int(row)
                if at.isfinite() and query.norm() > 0:
                    k[batch, head, block * column] = query * (at * factor / ((alpha - 1) * scale * query.dot(query)))
    return k


def test_no_certificate_is_wrong():
    rows = certified = wrong = missing = 0
    for seed in count():
        (q, k, v), mask, alpha, rule = problem(seed)
        _, tau = attend(q, k, v, mask, alpha=alpha, **rule)
        found = certify(q, k, tau, mask, alpha=alpha, **rule).rows
        lost = missed(oracle(q, k, v, alpha=alpha, **rule)[1], mask, q, k)
        real = allowed_pairs(q, k, **rule).any(-1).expand_as(found)
        rows, certified = rows + int(real.sum()), certified + int((found & real).sum())
        wrong, missing = wrong + int((found & lost).sum()), missing + int(lost.sum())
        if rows >= ROWS:
            break
    print(f"{rows} rows: {certified} certified, {missing} miss an edge, {wrong} of them certified")
    assert wrong == 0
    assert certified > rows / 20
    assert missing > rows / 20


def test_what_is_certified_has_the_output_and_the_gradients_of_full_attention():
    """A tenth of the rows, in float64: gradients of certified rows alone, so that nothing else is in them."""
    rows = 0
    for seed in count(10**6):
        tensors, mask, alpha, rule = problem(seed)
        ours, full = ([x.double().requires_grad_() for x in tensors] for _ in range(2))
        output, tau = attend(*ours, mask, alpha=alpha, **rule)
        found = certify(*(x.detach() for x in ours[:2]), tau.detach(), mask, alpha=alpha, **rule).rows
        expected = oracle(*full, alpha=alpha, **rule)[0]
        weight = torch.randn(expected.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        weight = weight * found[..., None]
        torch.testing.assert_close(output * found[..., None], expected * found[..., None], rtol=1e-6, atol=1e-7)
        for mine, theirs in zip(gradients(output, ours, weight), gradients(expected, full, weight), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6 * (1 + float(theirs.abs().max())))
        rows += int(found.sum())
        if rows >= ROWS / 10:
            return


def gradients(output, tensors, weight):
    return torch.autograd.grad((output * weight).sum(), tensors)


def test_a_row_that_may_see_a_nan_is_never_certified():
    rows = 0
    for seed in count(2 * 10**6):
        (q, k, v), mask, alpha, rule = problem(seed)
        _, tau = attend(q, k, v, mask, alpha=alpha, **rule)
        place = seed % N
        k[0, 0, place] = torch.nan
        found = certify(q, k, tau, mask, alpha=alpha, **rule).rows
        sees = allowed_pairs(q, k, **rule)[0, 0, :, place]
        assert not found[0, 0, sees].any()
        rows += int(sees.sum())
        if rows >= ROWS / 10:
            return
