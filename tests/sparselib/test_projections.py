"""Head-wise projections: their size, losses against loops, the draw of negatives, and that they learn."""

import pytest
import torch
from scipy.stats import chisquare

from sparselib.blocks.chunks import Chunks
from sparselib.masks import visible_pairs
from sparselib.metrics import recall
from sparselib.predictors import Distance, squared_distances
from sparselib.projections import (
    LOSSES,
    Batch,
    Projection,
    contrastive_loss,
    fit_projection,
    set_loss,
    triplet_loss,
)
from sparselib.triplets import gold_edges, sample_negatives


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def batch_of(lengths, *, causal=False, heads=2, dimension=4, scale=2.0, seed=0):
    """Queries and keys at random for sequences of these lengths."""
    shape = (2, len(lengths), heads, max(lengths), dimension)
    return Batch(*torch.randn(shape, generator=generator(seed)) * scale, torch.tensor(lengths), causal)


def drawn_graph(lengths, causal, density=0.3, seed=0):
    """Gold edges `[B, 2, n, n]` at random, and the visible pairs."""
    n = max(lengths)
    visible = visible_pairs(len(lengths), n, n, torch.tensor(lengths), causal)
    return (torch.rand(len(lengths), 2, n, n, generator=generator(seed)) < density) & visible, visible


def sample_triplets(gold, visible, random):
    edges = gold_edges(gold, visible)
    return edges.query, edges.positive, sample_negatives(edges, random)


# --- The projection ---


def test_a_layer_has_4160_parameters():
    projection, _ = fit_projection([batch_of([3], heads=16, dimension=64)], dimension=4)
    assert projection.weight.numel() + projection.bias.numel() == 4160
    assert (projection.weight[0].numel(), projection.bias[0].numel()) == (256, 4)


def test_every_head_has_its_own_affine_map():
    weight, bias = torch.randn(3, 5, 2, generator=generator()), torch.randn(3, 2, generator=generator(1))
    x = torch.randn(2, 3, 4, 5, generator=generator(2))
    projected = Projection(weight, bias)(x)
    assert projected.shape == (2, 3, 4, 2)
    for b, h, i in torch.cartesian_prod(*map(torch.arange, (2, 3, 4))).tolist():
        expected = [sum(x[b, h, i, d] * weight[h, d, r] for d in range(5)) + bias[h, r] for r in range(2)]
        torch.testing.assert_close(projected[b, h, i], torch.stack(expected), rtol=0, atol=1e-5)


# --- Losses ---


@pytest.mark.parametrize("margin", [0.0, 1.0, 20.0])
def test_losses_equal_their_loops(margin):
    positive, negative = torch.rand(2, 30, generator=generator(), dtype=torch.float64) * 5
    query = torch.randint(0, 8, (30,), generator=generator(1)) * 2  # odd queries have no triplet
    triplets = list(zip(positive.tolist(), negative.tolist(), query.tolist(), strict=True))
    hinges = [max(0, margin + p - n) for p, n, _ in triplets]
    assert triplet_loss(positive, negative, query, 20, margin).item() == pytest.approx(sum(hinges) / 30)
    per_query = [max(0, margin + sum(p - n for p, n, own in triplets if own == i)) for i in {*query.tolist()}]
    assert set_loss(positive, negative, query, 20, margin).item() == pytest.approx(sum(per_query) / 20)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("causal", [False, True])
def test_loss_of_a_batch_is_that_of_its_triplets_distances_and_so_is_its_gradient(causal, loss):
    batch = batch_of([6, 3], causal=causal)
    weight = torch.randn(2, 4, 2, generator=generator()).requires_grad_()
    projection = Projection(weight, torch.zeros(2, 2))
    q, k = projection(batch.q).double(), projection(batch.k).double()
    sides = [[], []]
    rows, *keys = sample_triplets(batch.gold, batch.visible, generator(3))
    for row, *pair in zip(rows.tolist(), *(x.tolist() for x in keys), strict=True):
        b, h, i = row // 12, row // 6 % 2, row % 6
        for side, j in zip(sides, pair, strict=True):
            side.append((q[b, h, i] - k[b, h, j]).square().sum())
    expected = LOSSES[loss](*map(torch.stack, sides), rows, 2 * 2 * 6, 1.0)
    found = contrastive_loss(projection, batch, loss=loss, margin=1.0, generator=generator(3))
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    gradients = [torch.autograd.grad(value, weight)[0] for value in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


def test_the_loss_of_chunks_is_that_of_their_vectors_and_blocks():
    """The last chunk of the second sentence is half padding, and there is a whole chunk of it."""
    batch, chunks = batch_of([6, 3]), Chunks(2)
    projection = Projection(torch.randn(2, 4, 2, generator=generator()), torch.zeros(2, 2))
    q, k = (torch.stack([x.clone() for x in projection(y)]) for y in (batch.q, batch.k))
    q[1, :, 3:] = k[1, :, 3:] = 0
    q, k = (x.reshape(2, 2, 3, 4) for x in (q, k))  # [B, H, chunks, 2 R]
    gold = batch.gold.reshape(2, 2, 3, 2, 3, 2).any(3).any(-1)
    visible = batch.visible.reshape(2, 1, 3, 2, 3, 2).any(3).any(-1)
    rows, *keys = sample_triplets(gold, visible, generator(3))
    assert not gold[1, :, 2].any()  # padded queries have no gold block
    positive, negative = (
        torch.stack(
            [
                (q[r // 6, r // 3 % 2, r % 3] - k[r // 6, r // 3 % 2, j]).square().sum()
                for r, j in zip(rows, side, strict=True)
            ]
        )
        for side in keys
    )
    expected = LOSSES["triplet"](positive, negative, rows, 12, 1.0)
    found = contrastive_loss(projection, batch, loss="triplet", margin=1.0, generator=generator(3), chunks=chunks)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


# --- Triplets ---


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("lengths", [[1, 1], [7, 3], [12, 12, 1]])
def test_triplets_are_all_edges_with_a_visible_key_that_is_no_edge(lengths, density, causal):
    gold, visible = drawn_graph(lengths, causal, density)
    triplets = torch.stack(sample_triplets(gold, visible, generator())).T.tolist()
    edges, free = gold.flatten(0, 2), (visible & ~gold).flatten(0, 2)
    expected = [[row, key] for row, key in edges.nonzero().tolist() if free[row].any()]
    assert [[row, positive] for row, positive, _ in triplets] == expected
    assert all(free[row, negative] for row, _, negative in triplets)


def test_rows_without_a_negative_are_left_out_and_only_they():
    visible = torch.ones(1, 1, 3, 3, dtype=torch.bool)
    gold = torch.tensor([[True, True, True], [True, False, False], [False, False, False]])[None, None]
    query, positive, negative = sample_triplets(gold, visible, generator())
    assert (query.tolist(), positive.tolist()) == ([1], [0])
    assert negative.item() in (1, 2)


def test_negatives_are_uniform():
    """Of each of many equal rows, with negatives at both ends and in between."""
    row = torch.tensor([False, True, False, False, True, False, True, False, False])
    gold = row.expand(1, 2, 2000, 9)
    visible = torch.ones(1, 1, 2000, 9, dtype=torch.bool)
    visible[..., 3] = False
    query, positive, negative = sample_triplets(gold, visible, generator())
    for half in (query < 2000, query >= 2000):
        for edge in (1, 4, 6):
            counts = negative[half & (positive == edge)].bincount(minlength=9)
            assert counts[[1, 3, 4, 6]].sum() == 0
            assert chisquare(counts[[0, 2, 5, 7, 8]].numpy()).pvalue > 0.01


def test_edges_of_a_row_draw_apart():
    """With replacement: two edges of a row may share a negative, and need not."""
    gold = torch.tensor([True, True, False, False]).expand(1, 1, 400, 4)
    _, _, negative = sample_triplets(gold, torch.ones_like(gold), generator())
    same = (negative.view(400, 2).diff() == 0).float().mean()
    assert 0.4 < same < 0.6


def test_same_generator_same_triplets_and_the_global_one_untouched():
    graph = drawn_graph([9, 4], False)
    before = torch.get_rng_state()
    first, again, other = (sample_triplets(*graph, generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(torch.stack(first), torch.stack(again))
    assert not torch.equal(first[2], other[2])
    assert torch.equal(before, torch.get_rng_state())


# --- Learning ---


def separable():
    """Two batches whose tokens attend within their group; group and noise lie in dimensions of their own."""
    sentences, heads, n = 16, 2, 24
    group = torch.nn.functional.one_hot(torch.randint(0, 4, (sentences, heads, n), generator=generator()), 4) * 4.0
    noise, none = torch.randn(2, sentences, heads, n, 4, generator=generator(1)) * 3, torch.zeros_like(group)
    q = torch.cat([group, noise[0], none], dim=-1)
    k = torch.cat([group, none, noise[1]], dim=-1)
    every = Batch(q, k, torch.full((sentences,), n))
    assert torch.equal(every.gold, group @ group.mT > 0)
    return every, [Batch(q[part], k[part], every.lengths[part]) for part in (slice(0, 8), slice(8, 16))]


def recall_of_nearest(projection, batch):
    """Recall of as many of the nearest pairs as there are gold edges."""
    q, k = projection(batch.q), projection(batch.k)
    threshold = squared_distances(q, k).flatten().kthvalue(int(batch.gold.sum())).values.item()
    return recall(Distance(threshold).predict(q, k), batch.gold).mean().item()


@pytest.mark.parametrize("loss", LOSSES)
def test_fitting_lowers_the_loss_and_brings_edges_near(loss):
    every, batches = separable()
    untrained, _ = fit_projection(batches, dimension=4, learning_rate=0.0)
    trained, losses = fit_projection(batches, dimension=4, loss=loss, learning_rate=0.05, epochs=20)
    assert len(losses) == 20 * 2
    assert sum(losses[-4:]) < sum(losses[:4]) / 2
    assert recall_of_nearest(untrained, every) < 0.5
    assert recall_of_nearest(trained, every) > 0.9


def test_same_seed_same_projection_and_the_global_generator_untouched():
    batches = [batch_of([6, 4, 5])]
    before = torch.get_rng_state()
    (first, losses), (again, same), (other, _) = (fit_projection(batches, dimension=3, seed=s) for s in (1, 1, 2))
    assert torch.equal(first.weight, again.weight)
    assert losses == same
    assert not torch.equal(first.weight, other.weight)
    assert torch.equal(before, torch.get_rng_state())


def test_gold_edges_kept_from_another_seed_change_nothing(monkeypatch):
    batches, edges = [batch_of([6, 4, 5]), batch_of([3, 6])], {}
    expected, losses = fit_projection(batches, dimension=3, epochs=2, seed=1)
    fit_projection(batches, dimension=3, epochs=2, seed=0, edges=edges)
    monkeypatch.setattr("sparselib.projections.gold_edges", None)  # not found again
    found, same = fit_projection(batches, dimension=3, epochs=2, seed=1, edges=edges)
    assert torch.equal(found.weight, expected.weight)
    assert losses == same


def test_the_bias_is_never_learned_and_nothing_needs_a_gradient():
    projection, _ = fit_projection([batch_of([6, 4, 5])], dimension=3)
    assert (projection.bias == 0).all()
    assert not projection.weight.requires_grad


def test_an_unknown_loss_is_named():
    with pytest.raises(ValueError, match="`loss` must be one of triplet, set; got 'hinge'"):
        fit_projection([batch_of([3])], dimension=2, loss="hinge")


def test_one_epoch_reads_any_iterable_and_several_need_one_that_can_be_read_again():
    batches = [batch_of([6, 4]), batch_of([5], seed=1)]
    (once, _), (listed, _) = fit_projection(iter(batches), dimension=3), fit_projection(batches, dimension=3)
    assert torch.equal(once.weight, listed.weight)
    with pytest.raises(ValueError, match="`batches` must be readable 2 times, got an iterator"):
        fit_projection(iter(batches), dimension=3, epochs=2)


def test_no_batch_is_an_error():
    with pytest.raises(ValueError, match="`batches` must hold at least one"):
        fit_projection([], dimension=3)
