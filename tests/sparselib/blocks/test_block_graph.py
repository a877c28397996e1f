"""The union of predicted, window and global blocks against sets, its laws, and memory linear in the number of blocks."""

import shutil
from dataclasses import fields

import pytest
import torch
from drawing import drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from sparselib.blocks import ClusteredBlocks, NearestBlocks
from sparselib.blocks.chunks import Chunks
from sparselib.blocks.graph import PredictedBlocks, _predicted, unite
from sparselib.kernels import BlockMask, block_sparse_entmax_attention
from sparselib.projections import Projection


def expected_row(predicted, i, real, count, causal):
    """The key blocks of query block i, of `real` real ones."""
    if i >= real:
        return set()
    visible = set(range(i + 1 if causal else real))
    if i in (0, real - 1):
        return visible
    return (set(predicted) | {0, i - 1, i, i + 1, real - 1}) & visible


def visited(mask: BlockMask, b, h, i) -> list[int]:
    return [j for counts, indices in mask.lists() for j in indices[b, h, i, : counts[b, h, i]].tolist()]


@settings(max_examples=80, deadline=None)
@given(data=st.data(), size=st.integers(1, 5), causal=st.booleans(), width=st.integers(0, 6), seed=st.integers(0, 99))
def test_union_equals_that_of_sets_sorted_and_each_block_once(data, size, causal, width, seed):
    lengths = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3))
    count = -(-max(lengths) // size)
    drawn = torch.Generator().manual_seed(seed)
    predicted = torch.randint(
        0, count + 1, (len(lengths), 2, count, width), generator=drawn
    )  # duplicates, future, padding
    mask = unite(predicted, size, max(lengths), lengths, causal)
    assert (mask.block_size, mask.length) == ((size, size), (max(lengths), max(lengths)))
    for b, length in enumerate(lengths):
        for h, i in torch.cartesian_prod(torch.arange(2), torch.arange(count)).tolist():
            expected = expected_row(set(predicted[b, h, i].tolist()), i, -(-length // size), count, causal)
            assert visited(mask, b, h, i) == sorted(expected)
            assert len(expected) <= width + 5 or i in (0, -(-length // size) - 1)


def test_without_lengths_one_sentence_may_stand_for_all():
    predicted = NearestBlocks(2).predict(*drawn(2, 1, 3, 10, 1, seed=1))
    mask = unite(predicted, 4, 38)
    assert mask.shape == (1, 3)
    q = drawn(2, 3, 38, 8)
    both = unite(predicted.expand(2, -1, -1, -1), 4, 38)
    assert torch.equal(block_sparse_entmax_attention(q, q, q, mask), block_sparse_entmax_attention(q, q, q, both))


@pytest.mark.parametrize(
    "predicted",
    [
        torch.zeros(1, 1, 4, 2),
        torch.zeros(1, 1, 5, 2, dtype=torch.long),
        torch.zeros(1, 4, 2, dtype=torch.long),
        torch.full((1, 1, 4, 2), 5),
        torch.full((1, 1, 4, 2), -1),
    ],
    ids=["float", "count", "ndim", "large", "negative"],
)
def test_bad_predictions_are_named_with_their_shape(predicted):
    with pytest.raises(ValueError, match=r"predicted.*\("):
        unite(predicted, 4, 14)


def test_bad_lengths_are_named():
    with pytest.raises(ValueError, match="lengths"):
        unite(torch.zeros(1, 1, 4, 2, dtype=torch.long), 4, 14, [15])


# --- The whole path of a model's layer ---


def layer_of(length, batch=1, heads=2, dimension=8, seed=0):
    """Queries and keys, and the projection that both go through."""
    q, k = drawn(2, batch, heads, length, dimension, seed=seed)
    weight = drawn(heads, dimension, 2, seed=1)
    return q, k, Projection(weight, torch.zeros(heads, 2))


def test_a_layer_uses_its_own_projection_and_predictor_and_the_lengths_in_blocks():
    q, k, projection = layer_of(22, batch=2)
    chunks, lengths = Chunks(4), torch.tensor([22, 9])
    other = Projection(projection.weight.flip(1), projection.bias)
    graph = PredictedBlocks([projection, other], [NearestBlocks(1), NearestBlocks(2)], chunks)
    vectors = [chunks.vectors(other(x), lengths) for x in (q, k)]
    expected = unite(NearestBlocks(2).predict(*vectors, lengths=[6, 3]), 4, 22, lengths)
    found = graph(1, q, k, lengths)
    assert torch.equal(found.to_dense(), expected.to_dense())
    assert not torch.equal(found.to_dense(), graph(0, q, k, lengths).to_dense())


@pytest.mark.parametrize("lengths", [None, [22, 9]], ids=["whole", "padded"])
@pytest.mark.parametrize("predictor", ["nearest", "clustered"])
def test_a_compiled_prediction_is_the_same(predictor, lengths):
    """In one graph: nothing in it waits for numbers."""
    q, k, projection = layer_of(22, batch=2)
    centroids = drawn(2, 3, 8, seed=2)
    rule = NearestBlocks(2) if predictor == "nearest" else ClusteredBlocks(centroids, 2)
    layer = (projection, rule, Chunks(4), q, k, None if lengths is None else torch.tensor(lengths))
    compiled = torch.compile(_predicted, fullgraph=True, backend="aot_eager")
    assert all(torch.equal(x, y) for x, y in zip(compiled(*layer), _predicted(*layer), strict=True))


@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler on a CPU")
def test_compiled_by_an_option():
    q, k, projection = layer_of(22, batch=2)
    masks = [PredictedBlocks([projection], [NearestBlocks(2)], Chunks(4), x)(0, q, k, None) for x in (False, True)]
    assert torch.equal(masks[0].to_dense(), masks[1].to_dense())


def test_predicted_lists_pass_the_checks_of_masks():
    q, k, projection = layer_of(22, batch=2)
    mask = PredictedBlocks([projection], [NearestBlocks(2)], Chunks(4))(0, q, k, torch.tensor([22, 9]))
    checked = BlockMask(**{field.name: getattr(mask, field.name) for field in fields(mask)})
    assert torch.equal(checked.to_dense(), mask.to_dense())


@pytest.mark.parametrize(
    ("blocks", "first", "named"),
    [
        (6, 7, r"`predicted` must hold blocks in 0..6, got 7 to 7 in shape \(1, 2, 6, 1\)"),
        (5, 0, r"must be integers \[B, H, 6, K\]"),
    ],
    ids=["index", "shape"],
)
def test_predictors_of_others_are_checked(blocks, first, named):
    class Wrong:
        def predict(self, q, k, *, lengths=None, causal=False):
            return torch.full((*q.shape[:2], blocks, 1), first)

    q, k, projection = layer_of(22)
    with pytest.raises(ValueError, match=named):
        PredictedBlocks([projection], [Wrong()], Chunks(4))(0, q, k, None)


class LargestStorage(TorchDispatchMode):
    """The most bytes that the result of any operation takes; an expanded view takes those of what it views."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for x in result if isinstance(result, tuple | list) else [result]:
            if isinstance(x, torch.Tensor):
                self.bytes = max(self.bytes, x.untyped_storage().nbytes())
        return result


@pytest.mark.parametrize("size", [1, 4])
def test_memory_is_linear_in_the_number_of_blocks(size):
    """Even for 65,536 tokens in blocks of one or four, where a byte for each pair of blocks would be 4 GB or 268 MB."""
    length, heads, clusters, count = 65_536, 1, 8, 4
    q, k, projection = layer_of(length, heads=heads)
    centroids = drawn(heads, clusters, 2 * size, seed=2)
    predictor = ClusteredBlocks(centroids, count)
    graph = PredictedBlocks([projection], [predictor], Chunks(size))
    with LargestStorage() as largest:
        mask = graph(0, q, k, None)
    assert largest.bytes <= 100 * length
    assert mask.density < 0.01
