"""Token-level rules inside visited blocks, against dense attention and a loop over pairs."""

from functools import partial

import entmax as package
import pytest
import torch
from ruled_attention import (
    ALPHAS,
    BATCH,
    HEADS,
    LENGTH,
    MASKS,
    PADDING,
    RULES,
    SCORES,
    SLOPES,
    check,
    dense,
    random_inputs,
    random_mask,
)

from sparselib.kernels import (
    BlockMask,
    block_sparse_entmax_attention,
    block_sparse_entmax_decode,
    visits,
)
from sparselib.kernels.reference import block_sparse_entmax_attention_reference


@pytest.fixture(autouse=True)
def several_chunks(monkeypatch):
    """The sums over chunks are part of what is tested."""
    monkeypatch.setattr(visits, "CHUNK_SCORES", 1500)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("name", RULES)
def test_rules_inside_visited_blocks(name, alpha):
    check(random_inputs(), random_mask(), alpha=alpha, **RULES[name])


@pytest.mark.parametrize("lengths", [None, torch.tensor([21, 10])])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_rules_with_causality_and_lengths(name, causal, lengths):
    check(random_inputs(), random_mask(), causal=causal, lengths=lengths, **RULES[name])


@pytest.mark.parametrize("name", RULES)
def test_rules_without_a_block_mask_and_with_fewer_queries_than_keys(name):
    check(random_inputs(), None, **RULES[name])
    check(random_inputs(13), random_mask(13), **RULES[name])


@pytest.mark.parametrize("alpha", [1, 1.5, 2])
@pytest.mark.parametrize("name", RULES)
def test_single_precision(name, alpha):
    check(random_inputs(dtype=torch.float32), random_mask(), alpha=alpha, tolerance=2e-5, **RULES[name])


@pytest.mark.parametrize("alpha", [1, 1.5, 2])
@pytest.mark.parametrize("name", RULES)
def test_half_precision_errs_at_most_twice_as_much_as_pytorch(name, alpha):
    inputs, mask = random_inputs(dtype=torch.bfloat16), random_mask()
    exact = dense(*inputs, mask, alpha=alpha, **RULES[name])
    plain = dense(*inputs, mask, alpha=alpha, dtype=torch.bfloat16, **RULES[name])
    output = block_sparse_entmax_attention(*inputs, mask, alpha=alpha, **RULES[name])
    assert output.dtype == torch.bfloat16
    assert (output - exact).abs().max() <= 2 * (plain - exact).abs().max()


@pytest.mark.parametrize("alpha", [1, 1.5, 2])
def test_a_loop_over_pairs(alpha):
    """Each rule is called with four numbers, and rows are normalised by the entmax package."""
    q, k, v = random_inputs(7, 7, batch=1)
    rule, change = MASKS["window of each head"], SCORES["ALiBi"]
    normalize = {1: torch.softmax, 1.5: package.entmax15, 2: package.sparsemax}[alpha]
    output = block_sparse_entmax_attention(q, k, v, alpha=alpha, mask_mod=rule, score_mod=change, scale=0.4)
    for h in range(HEADS):
        for i in range(7):
            row = [j for j in range(7) if rule(*torch.tensor([0, h, i, j]))]
            scores = [change(0.4 * q[0, h, i] @ k[0, h // 2, j], *torch.tensor([0, h, i, j])) for j in row]
            expected = normalize(torch.stack(scores), dim=-1) @ v[0, h // 2, row]
            torch.testing.assert_close(output[0, h, i], expected)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    "rules",
    [
        {"mask_mod": lambda b, h, i, j: (i != 5) & (j >= PADDING[b]) & (i >= PADDING[b])},
        {"score_mod": lambda score, b, h, i, j: score.where((i != 5) & (i >= PADDING[b]), -torch.inf)},
    ],
)
def test_rows_that_a_rule_leaves_empty_are_zero(rules, alpha):
    q, k, v = (x.requires_grad_() for x in random_inputs())
    output = block_sparse_entmax_attention(q, k, v, alpha=alpha, **rules)
    empty = torch.zeros(BATCH, HEADS, LENGTH, dtype=torch.bool)
    empty[:, :, 5] = empty[1, :, :9] = True
    assert torch.equal((output == 0).all(-1), empty)
    gradients = torch.autograd.grad(output.square().sum() + output.sum(), (q, k, v))
    assert (gradients[0][empty] == 0).all()
    assert all(x.isfinite().all() and x.any() for x in gradients)


def test_the_reference_has_the_same_rules():
    inputs, mask = random_inputs(), random_mask()
    ruled = BlockMask(mask.kv_num_blocks, mask.kv_indices, (4, 8), LENGTH, mask_mod=MASKS["documents"])
    found = block_sparse_entmax_attention_reference(*inputs, ruled, **RULES["both"])[0]
    torch.testing.assert_close(found, block_sparse_entmax_attention(*inputs, ruled, **RULES["both"]))


class Doubled(torch.autograd.Function):
    """A function whose inputs PyTorch does not show to the library."""

    forward = staticmethod(lambda ctx, x: 2 * x)
    backward = staticmethod(lambda ctx, grad: 2 * grad)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"mask_mod": torch.ones(4, dtype=torch.bool)}, "`mask_mod` must be a function of index tensors, got Tensor"),
        ({"mask_mod": lambda b, h, i, j: i - j}, "`mask_mod` must return booleans, got torch.int64"),
        (
            {"score_mod": SCORES["bias"], "backend": "triton"},
            "`score_mod` must be None for the Triton.*backend='gather'",
        ),
        ({"mask_mod": MASKS["window"], "certify": True}, "`mask_mod` must be None with `certify` or `exact`"),
        ({"mask_mod": MASKS["window"], "exact": True}, "`mask_mod` must be None with `certify` or `exact`"),
        (
            {"score_mod": lambda score, b, h, i, j: score + Doubled.apply(SLOPES.requires_grad_())[h]},
            "`score_mod` must read the same tensors in every call",
        ),
    ],
)
def test_errors_name_the_argument(rules, message):
    q, k, v = (x.float() for x in random_inputs())
    with pytest.raises(ValueError, match=message):
        block_sparse_entmax_attention(q, k, v, **rules)


@pytest.mark.parametrize("certificate", ["certify", "exact"])
def test_a_mask_with_a_rule_is_refused_where_no_rule_applies(certificate):
    counts, indices = torch.ones(1, 1, 1, dtype=torch.int64), torch.zeros(1, 1, 1, 1, dtype=torch.int64)
    mask = BlockMask(counts, indices, LENGTH, LENGTH, mask_mod=MASKS["window"])
    with pytest.raises(ValueError, match=r"`block_mask.mask_mod` must be None with"):
        block_sparse_entmax_attention(*random_inputs(), mask, **{certificate: True})
    with pytest.raises(ValueError, match="`block_mask` must have no mask_mod"):
        block_sparse_entmax_decode(*random_inputs(), mask)


def test_second_derivatives_and_compiled_calls_are_refused(monkeypatch):
    q, k, v = (x.requires_grad_() for x in random_inputs())
    attend = partial(block_sparse_entmax_attention, q, k, v, mask_mod=MASKS["window"])
    (gradient,) = torch.autograd.grad(attend().square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        gradient.sum().backward()
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    with pytest.raises(ValueError, match=r"`mask_mod` must be None under torch.compile"):
        attend()
