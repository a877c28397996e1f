"""Every rival's rule against loops over queries and keys, with padding, in both directions and into the past only."""

import pytest
import torch

from replication.retrofit.rivals import Gate, Quest, StreamingLLM, TokensOfBlocks, VerticalSlash, XAttention, fit_gate
from replication.retrofit.rivals.sampled import sampled_rows
from sparselib.blocks import ClusteredBlocks
from sparselib.normalizers import Entmax
from sparselib.projections import Batch

LENGTHS = [13, 10]
softmax = Entmax(1)
N, D = 13, 4


@pytest.fixture(params=[False, True], ids=["both directions", "causal"])
def causal(request):
    return request.param


@pytest.fixture
def tensors():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 2, N, D, generator=generator) for _ in range(2)]


def rows(q, k, causal):
    """Batch entry, head, query, and the keys that it may see."""
    for b, length in enumerate(LENGTHS):
        for h in range(q.shape[1]):
            for i in range(length):
                yield b, h, i, range(i + 1 if causal else length)


def assert_follows(predictor, tensors, causal, chosen):
    """``chosen(b, h, i, keys)`` says which of the visible keys a query attends to; padding attends to nothing."""
    q, k = tensors
    found = predictor.predict(q, k, lengths=LENGTHS, causal=causal)
    expected = torch.zeros_like(found)
    for b, h, i, keys in rows(q, k, causal):
        for j in chosen(b, h, i, keys):
            expected[b, h, i, j] = True
    assert torch.equal(found, expected)
    assert found.any()
    assert not found[:, :, :10, :10].all()


def test_streaming_llm(tensors, causal):
    assert_follows(
        StreamingLLM(2, 3), tensors, causal, lambda b, h, i, keys: [j for j in keys if j < 2 or abs(i - j) < 3]
    )


def test_quest(tensors, causal):
    q, k = tensors

    def chosen(b, h, i, keys):
        bounds = {}
        for page in range(5):
            of_page = [k[b, h, j] for j in range(3 * page, min(3 * page + 3, LENGTHS[b]))]
            if of_page and 3 * page in keys:
                low, high = torch.stack(of_page).amin(0), torch.stack(of_page).amax(0)
                bounds[page] = sum(max(q[b, h, i, d] * low[d], q[b, h, i, d] * high[d]).item() for d in range(D))
        best = sorted(bounds, key=bounds.get, reverse=True)[:2]
        return [j for j in keys if j // 3 in best]

    assert_follows(Quest(3, 2), tensors, causal, chosen)


def test_a_bound_of_quest_is_never_below_a_score(tensors):
    """So the page of the largest key is always among the first pages, if each key is a page."""
    q, k = tensors
    found = Quest(1, 1).predict(q, k)
    assert torch.equal(found, (q @ k.mT) == (q @ k.mT).amax(-1, keepdim=True))


def test_x_attention(tensors, causal):
    q, k = tensors
    block, stride, mass = 4, 2, 0.6

    def group_weights(b, h, group):
        """Softmax over groups of keys of the sums of antidiagonals: query s with key S - 1 - s of the group."""
        real = LENGTHS[b]
        sums = {}
        for other in range(-(-N // block) * block // stride):
            first, last = other * stride, group * stride + stride - 1
            if first < real and group * stride < real and (not causal or first <= min(last, real - 1)):
                total = 0.0
                for s in range(stride):
                    i, j = group * stride + s, first + stride - 1 - s
                    if i < real and j < real:
                        total += (q[b, h, i] @ k[b, h, j]).item()
                sums[other] = total / (D**0.5 * stride)
        if not sums:
            return {}
        weights = torch.tensor(list(sums.values())).softmax(0)
        return dict(zip(sums, weights.tolist(), strict=True))

    def chosen(b, h, i, keys):
        of_blocks = {}
        for group in range(i // block * block // stride, (i // block + 1) * block // stride):
            for other, weight in group_weights(b, h, group).items():
                of_blocks[other * stride // block] = of_blocks.get(other * stride // block, 0.0) + weight
        kept, total = {i // block}, 0.0
        for one in sorted(of_blocks, key=of_blocks.get, reverse=True):
            if total < mass * sum(of_blocks.values()):
                kept.add(one)
            total += of_blocks[one]
        return [j for j in keys if j // block in kept]

    assert_follows(XAttention(mass, block, stride), tensors, causal, chosen)


def test_vertical_slash(tensors, causal):
    q, k = tensors
    kept = {}
    for b, length in enumerate(LENGTHS):
        for h in range(2):
            columns, offsets = [0.0] * N, {}
            for i in sampled_rows(N, 5, causal).tolist():
                keys = range(0 if i >= length else i + 1 if causal else length)
                if len(keys):
                    weights = torch.stack([q[b, h, i] @ k[b, h, j] / D**0.5 for j in keys]).softmax(0).tolist()
                    for j in keys:
                        columns[j] += weights[j]
                        offsets[i - j] = offsets.get(i - j, 0.0) + weights[j]
            best = sorted(range(N), key=lambda j: columns[j], reverse=True)[:2]
            kept[b, h] = set(best), set(sorted(offsets, key=offsets.get, reverse=True)[:3])
    assert_follows(
        VerticalSlash(2, 3, sample=5),
        tensors,
        causal,
        lambda b, h, i, keys: [j for j in keys if j in kept[b, h][0] or i - j in kept[b, h][1]],
    )


def test_the_gate_scores_pooled_blocks(tensors, causal):
    q, k = tensors
    generator = torch.Generator().manual_seed(1)
    of_queries, of_keys = torch.randn(2, D, 3, generator=generator), torch.randn(2, 3 * D, 3, generator=generator)

    def chosen(b, h, i, keys):
        real, scores = LENGTHS[b], {}
        queries = torch.stack([q[b, h, j] for j in range(i // 4 * 4, min(i // 4 * 4 + 4, real))])
        last_of_block = min(i // 4 * 4 + 3, real - 1)
        for one in range(-(-real // 4)):
            if not causal or one * 4 <= last_of_block:
                x = torch.stack([k[b, h, j] for j in range(one * 4, min(one * 4 + 4, real))])
                pooled = torch.cat([x.mean(0), x.amax(0), x.amin(0)])
                scores[one] = ((queries.mean(0) @ of_queries[h]) @ (pooled @ of_keys[h]) / 3**0.5).item()
        best = sorted(scores, key=scores.get, reverse=True)[:2]
        return [j for j in keys if j // 4 in best]

    assert_follows(Gate(of_queries, of_keys, 4, 2), tensors, causal, chosen)


def test_sparsefinders_blocks(tensors, causal):
    """Each centroid picks the query chunk and the key chunk nearest to it; window, first and last block come on top."""
    q, k = tensors
    centroids = torch.randn(2, 3, 2 * D, generator=torch.Generator().manual_seed(3))

    def chunk(x, b, h, number):
        padded = torch.zeros(2, D)
        part = x[b, h, 2 * number : min(2 * number + 2, LENGTHS[b])]
        padded[: len(part)] = part
        return padded.flatten()

    def chosen(b, h, i, keys):
        count = -(-LENGTHS[b] // 2)
        near = [
            [
                sorted(range(count), key=lambda c: (chunk(x, b, h, c) - centroid).norm().item())[:1]
                for centroid in centroids[h]
            ]
            for x in (q, k)
        ]
        own = i // 2
        blocks = {0, count - 1, own - 1, own, own + 1}
        picked = [number for number, of_queries in enumerate(near[0]) if own in of_queries]
        blocks |= set(near[1][picked[0]]) if picked else set()
        everything = own in (0, count - 1)
        return [j for j in keys if everything or j // 2 in blocks]

    assert_follows(TokensOfBlocks(ClusteredBlocks(centroids, 1), 2), tensors, causal, chosen)


def test_the_gate_learns_where_weight_is():
    generator = torch.Generator().manual_seed(0)
    turn = torch.randn(2, 8, 8, generator=generator)

    def batch():
        x = torch.randn(4, 2, 32, 8, generator=generator).repeat_interleave(4, dim=2)[:, :, :32] * 1.5
        return Batch(x, x @ turn, torch.tensor([32, 32, 32, 24]))

    batches, other = [batch() for _ in range(6)], batch()
    learned = fit_gate(batches, softmax, block=4, count=2, dimension=8, epochs=20, learning_rate=0.02, seed=0)
    start = fit_gate(batches, softmax, block=4, count=2, dimension=8, epochs=1, learning_rate=0.0, seed=0)
    weights = (other.q @ other.k.mT / 8**0.5).masked_fill(~other.visible, -torch.inf).softmax(-1).nan_to_num(0.0)

    def found(gate):
        return (weights * gate.predict(other.q, other.k, lengths=other.lengths)).sum().item()

    assert found(learned) > 1.2 * found(start)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: StreamingLLM(-1, 3), "sinks"),
        (lambda: StreamingLLM(1, 0), "window"),
        (lambda: Quest(0, 1), "page"),
        (lambda: Quest(4, 0), "count"),
        (lambda: XAttention(0.9, 6, 4), "block"),
        (lambda: XAttention(1.5), "mass"),
        (lambda: VerticalSlash(0, 1), "columns"),
        (lambda: fit_gate([], softmax, block=4, count=1, dimension=2, epochs=1, learning_rate=0.1, seed=0), "batches"),
    ],
)
def test_bad_numbers_are_named(make, named):
    with pytest.raises(ValueError, match=named):
        make()
