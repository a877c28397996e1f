"""Certificates of many random problems.

The environment variable ``ROWS`` sets the number of rows; `make test-certificates` tests a million. All settings are random:
structure, score sizes from 1e-8 to 1e4, ties, keys just above and below the score at which they get a weight, alpha, dtype,
visited blocks, lengths, causality, and a NaN key.
"""

import os
from itertools import count

import torch
from dense import ALPHAS, KINDS, allowed_pairs, missed, oracle, random_inputs, random_mask

from sparselib.kernels.block_operator import attend
from sparselib.kernels.certificate import certify

ROWS = int(os.environ.get("ROWS", "10000"))
SIZES = [1e-8, 1e-3, 1.0, 30.0, 1e4]
N = 129


def problem(seed: int):
    """Return a random problem: q, k, v, the blocks to visit, alpha, and the rules."""
    rng = torch.Generator().manual_seed(seed)

    def choice(values):
        return values[int(torch.randint(len(values), (), generator=rng))]

    kind, size = choice([*KINDS, "ties", "near"]), choice(SIZES)
    dtype = choice([torch.float32, torch.float64])
    # A block of one key has the tightest bound.
    block = choice([1, 4, 16])
    mask = random_mask(N, block=block, density=choice([0.1, 0.5, 0.9]), seed=seed)
    alpha = choice(ALPHAS)
    q, k, v = random_inputs(kind, n=N, seed=seed, dtype=torch.float64)
    if kind == "ties":  # Rounded entries make many scores equal.
        q, k = q.round(), k.round()
    q = q * size
    if kind == "near":
        k = near_the_threshold(q, k, v, mask, alpha, rng, block)
    rule = {"causal": choice([False, True]), "lengths": choice([None, torch.tensor([100, 0]), torch.tensor([129, 37])])}
    return (
        [x.to(dtype) for x in (q, k, v)],
        mask,
        alpha,
        {key: value for key, value in rule.items() if value is not None},
    )


def near_the_threshold(q, k, v, mask, alpha, rng, block):
    """Move a key of a skipped block to almost exactly a query's threshold, the hardest case."""
    scale = q.shape[-1] ** -0.5
    tau = attend(q, k, v, mask, alpha=alpha)[1]
    visited = mask.to_dense()
    for batch in range(len(q)):
        for head in range(q.shape[1]):
            skipped = (~visited[batch, head]).nonzero().tolist()
            if skipped:
                row, column = skipped[int(torch.randint(len(skipped), (), generator=rng))]
                query, threshold = q[batch, head, block * row], tau[batch, head, block * row]
                factor = 1 + 10.0 ** -float(torch.randint(2, 15, (), generator=rng)) * (-1) ** int(row)
                if threshold.isfinite() and query.norm() > 0:
                    needed = threshold * factor / ((alpha - 1) * scale * query.dot(query))
                    k[batch, head, block * column] = query * needed
    return k


def test_no_certificate_is_wrong():
    rows = certified = wrong = missing = 0
    for seed in count():
        (q, k, v), mask, alpha, rule = problem(seed)
        _, tau = attend(q, k, v, mask, alpha=alpha, **rule)
        certified_rows = certify(q, k, tau, mask, alpha=alpha, **rule).rows
        lost = missed(oracle(q, k, v, alpha=alpha, **rule)[1], mask, q, k)
        real = allowed_pairs(q, k, **rule).any(-1).expand_as(certified_rows)
        rows, certified = rows + int(real.sum()), certified + int((certified_rows & real).sum())
        wrong, missing = wrong + int((certified_rows & lost).sum()), missing + int(lost.sum())
        if rows >= ROWS:
            break
    print(f"{rows} rows: {certified} certified; {missing} miss an edge, {wrong} of which are certified")
    assert wrong == 0
    assert certified > rows / 20
    assert missing > rows / 20


def test_certified_rows_have_the_output_and_gradients_of_full_attention():
    """Test a tenth of the rows, in float64, with gradients of the certified rows only."""
    rows = 0
    for seed in count(10**6):
        tensors, mask, alpha, rule = problem(seed)
        leaves, full = ([x.double().requires_grad_() for x in tensors] for _ in range(2))
        output, tau = attend(*leaves, mask, alpha=alpha, **rule)
        certified_rows = certify(*(x.detach() for x in leaves[:2]), tau.detach(), mask, alpha=alpha, **rule).rows
        expected = oracle(*full, alpha=alpha, **rule)[0]
        weight = torch.randn(expected.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        selected = certified_rows[..., None]
        weight = weight * selected
        torch.testing.assert_close(output * selected, expected * selected, rtol=1e-6, atol=1e-7)
        pairs = zip(gradients(output, leaves, weight), gradients(expected, full, weight), strict=True)
        for gradient, exact in pairs:
            torch.testing.assert_close(gradient, exact, rtol=1e-4, atol=1e-6 * (1 + float(exact.abs().max())))
        rows += int(certified_rows.sum())
        if rows >= ROWS / 10:
            return


def gradients(output, tensors, weight):
    """Return the gradients of the weighted output."""
    return torch.autograd.grad((output * weight).sum(), tensors)


def test_a_row_that_may_attend_to_nan_is_never_certified():
    rows = 0
    for seed in count(2 * 10**6):
        (q, k, v), mask, alpha, rule = problem(seed)
        _, tau = attend(q, k, v, mask, alpha=alpha, **rule)
        position = seed % N
        k[0, 0, position] = torch.nan
        certified_rows = certify(q, k, tau, mask, alpha=alpha, **rule).rows
        touched = allowed_pairs(q, k, **rule)[0, 0, :, position]
        assert not certified_rows[0, 0, touched].any()
        rows += int(touched.sum())
        if rows >= ROWS / 10:
            return
