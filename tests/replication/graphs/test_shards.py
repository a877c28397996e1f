"""Graph files: what is written comes back, batch by batch, whole or not at all."""

import json

import entmax as reference
import pytest
import torch
from drawing import drawn_in_turn
from safetensors import safe_open
from safetensors.torch import save_file

from replication.files.storage import FormatError, encode_header, write_tensors
from replication.graphs.shards import KIND, open_graphs, sample_sequences, writing_graphs
from sparselib import projections
from sparselib.dense_attention import gold_graph

LENGTHS = torch.tensor([5, 9, 1, 3, 7])
SEQUENCE = torch.tensor([2, 3, 11, 12, 40])
HEADS, LENGTH, DIMENSION, LAYERS = 2, 10, 4, 3


def queries_and_keys(seed=0, length=LENGTH):
    shape = (len(LENGTHS), HEADS, length, DIMENSION)
    return tuple(x * 2 for x in drawn_in_turn(shape, shape, seed=seed))


def write(folder, *, causal=False, written=5, size=2):
    """Write all layers in batches, each cut to its longest sentence, as models make them."""
    paths = [folder / f"layer{layer:02}.safetensors" for layer in range(LAYERS)]
    with writing_graphs(paths, SEQUENCE, HEADS, LENGTH, DIMENSION, causal=causal, task="toy") as writer:
        for start in range(0, written, size):
            lengths = LENGTHS[start : start + size]
            for layer in range(LAYERS):
                q, k = (x[start : start + size, :, : int(lengths.max())] for x in queries_and_keys(layer))
                writer.write(layer, start, q, k, lengths)
    return paths


@pytest.fixture
def paths(tmp_path):
    return write(tmp_path)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_batches_are_what_was_written_cut_to_their_longest(paths, size):
    for layer, path in enumerate(paths):
        q, k = queries_and_keys(layer)
        with open_graphs(path) as graphs:
            seen = 0
            for batch in graphs.batches(size):
                longest = int(batch.lengths.max())
                assert batch.first == seen
                assert batch.q.shape == batch.k.shape == (len(batch.lengths), HEADS, longest, DIMENSION)
                for b, length in enumerate(batch.lengths.tolist()):
                    assert length == LENGTHS[seen]
                    assert torch.equal(batch.q[b, :, :length], q[seen, :, :length])
                    assert torch.equal(batch.k[b, :, :length], k[seen, :, :length])
                    seen += 1
            assert seen == len(graphs) == len(LENGTHS)


def test_graphs_know_their_shape_sequences_and_header(paths):
    with open_graphs(paths[1]) as graphs:
        assert (graphs.count, graphs.heads, graphs.length, graphs.dimension) == (5, HEADS, LENGTH, DIMENSION)
        assert torch.equal(graphs.sequence, SEQUENCE)
        assert torch.equal(graphs.lengths, LENGTHS)
        assert {"layer": 1, "task": "toy", "causal": False}.items() <= graphs.header.items()
        assert "torch" in graphs.header["provenance"]


@pytest.mark.parametrize("causal", [False, True])
def test_visible_and_gold_follow_from_q_k_lengths_and_causality(tmp_path, causal):
    path = write(tmp_path, causal=causal)[0]
    q, k = (x.double() for x in queries_and_keys(0))
    with open_graphs(path) as graphs:
        assert graphs.causal is causal
        for batch in graphs.batches(2):
            gold, visible = torch.zeros_like(batch.gold), torch.zeros_like(batch.visible)
            for b, length in enumerate(batch.lengths.tolist()):
                for i in range(length):
                    end = i + 1 if causal else length
                    scores = torch.einsum("hd,hkd->hk", q[batch.first + b, :, i], k[batch.first + b, :, :end]) / 2
                    gold[b, :, i, :end] = reference.entmax15(scores, dim=-1) > 0
                    visible[b, 0, i, :end] = True
            assert torch.equal(batch.gold, gold)
            assert torch.equal(batch.visible, visible)


@pytest.mark.parametrize("causal", [False, True])
def test_gold_is_computed_once_for_all_epochs_and_seeds(tmp_path, monkeypatch, causal):
    write(tmp_path, causal=causal)
    computed = []
    monkeypatch.setattr(
        projections, "gold_graph", lambda *args, **rules: computed.append(1) or gold_graph(*args, **rules)
    )
    with open_graphs(tmp_path / "layer00.safetensors") as layer:
        for size, batches in ((2, 3), (5, 1)):
            computed.clear()
            epochs = [[batch.gold for batch in layer.batches(size)] for _ in range(3)]
            assert len(computed) == batches
            for batch, *golds in zip(layer.batches(size), *epochs, strict=True):
                fresh = gold_graph(batch.q, batch.k, batch.visible) & batch.visible
                assert all(torch.equal(gold, fresh) for gold in golds)


def test_the_file_is_what_the_safetensors_library_reads(paths):
    q, _ = queries_and_keys(2)
    assert int.from_bytes(paths[2].read_bytes()[:8], "little") % 8 == 0  # so the tensors are aligned
    with safe_open(paths[2], framework="pt") as file:
        assert set(file.keys()) == {"q", "k", "lengths", "sequence"}
        assert json.loads(file.metadata()["header"])["kind"] == KIND
        assert torch.equal(file.get_tensor("q")[1, :, :9], q[1, :, :9])
        assert (file.get_tensor("q")[:, :, 9:] == 0).all()  # nobody wrote there
        assert torch.equal(file.get_tensor("lengths"), LENGTHS)
        assert torch.equal(file.get_tensor("sequence"), SEQUENCE)


def test_half_precision_and_gradients_are_written_as_float32(tmp_path):
    q, k = (x.half().requires_grad_() for x in queries_and_keys())
    with writing_graphs([tmp_path / "g"], SEQUENCE, HEADS, LENGTH, DIMENSION, causal=False) as writer:
        writer.write(0, 0, q, k, torch.full((5,), LENGTH))
    with open_graphs(tmp_path / "g") as graphs:
        assert torch.equal(graphs.batch(0, 5).q, q.detach().float())


def test_an_interrupted_write_leaves_nothing(tmp_path):
    def interrupted():
        paths = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
        with writing_graphs(paths, SEQUENCE, HEADS, LENGTH, DIMENSION, causal=False) as writer:
            writer.write(0, 0, *queries_and_keys(), LENGTHS)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_too_few_sequences_are_an_error_and_leave_nothing(tmp_path):
    with pytest.raises(ValueError, match="not written"):
        write(tmp_path, written=4)
    assert list(tmp_path.iterdir()) == []


TOO_MUCH = {"longer": (0, (1, HEADS, LENGTH + 1, DIMENSION)), "heads": (0, (1, HEADS - 1, LENGTH, DIMENSION)),
            "wider": (0, (1, HEADS, LENGTH, DIMENSION + 1)), "beyond the last": (5, (1, HEADS, LENGTH, DIMENSION)),
            "over the last": (4, (2, HEADS, LENGTH, DIMENSION))}  # fmt: skip


@pytest.mark.parametrize("which", ["q", "k"])
@pytest.mark.parametrize("case", TOO_MUCH)
def test_what_does_not_fit_is_an_error(tmp_path, case, which):
    """Not what the file was laid out for, or beyond its last sequence."""
    start, shape = TOO_MUCH[case]
    right = torch.zeros(shape[0], HEADS, LENGTH, DIMENSION)
    q, k = (torch.zeros(shape) if name == which else right for name in "qk")

    def beyond():
        with writing_graphs([tmp_path / "g"], SEQUENCE, HEADS, LENGTH, DIMENSION, causal=False) as writer:
            writer.write(0, 0, *queries_and_keys(), LENGTHS)
            writer.write(0, start, q, k, torch.ones(shape[0]))

    with pytest.raises(ValueError, match="must fit into"):
        beyond()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kept", [0, 4, 100, -1, -1000])
def test_a_truncated_file_is_a_format_error(paths, kept):
    paths[0].write_bytes(paths[0].read_bytes()[:kept])
    with pytest.raises(FormatError, match="truncated"), open_graphs(paths[0]):
        pass


def test_foreign_files_are_format_errors(tmp_path):
    path = tmp_path / "file.safetensors"
    save_file({"q": torch.zeros(2)}, path)
    with pytest.raises(FormatError, match="foreign"), open_graphs(path):
        pass
    write_tensors(path, {"weight": torch.zeros(2)}, kind="projection")
    with pytest.raises(FormatError, match="got projection"), open_graphs(path):
        pass
    save_file({"q": torch.zeros(2), "k": torch.zeros(2)}, path, encode_header(KIND, {"causal": False}))
    with pytest.raises(FormatError, match="tensors"), open_graphs(path):
        pass
    tensors = {"q": torch.zeros(2, 1, 3, 4), "lengths": torch.ones(2), "sequence": torch.ones(2)}
    for k in (torch.zeros(2, 1, 3, 4).half(), torch.zeros(1, 1, 3, 4)):
        save_file(tensors | {"k": k}, path, encode_header(KIND, {"causal": False}))
        with pytest.raises(FormatError, match="must be float32 of one shape"), open_graphs(path):
            pass


@pytest.mark.parametrize("name", ["q", "k"])
@pytest.mark.parametrize("bad", [torch.nan, -torch.inf])
def test_values_that_are_not_finite_are_refused_by_name(graphs_of, name, bad):
    q, k = queries_and_keys()
    (q if name == "q" else k)[3, 1, 2, 0] = bad
    graphs = graphs_of([LENGTH] * 5, q=q, k=k)
    graphs.batch(0, 3)
    with pytest.raises(ValueError, match=rf"`{name}` must be finite, got NaN or infinity in sequences 3 to 4"):
        graphs.batch(3, 5)


@pytest.mark.parametrize(("available", "wanted"), [(10, 4), (10, 10), (3, 8), (1, 1), (1000, 100)])
def test_sample_is_distinct_in_order_and_repeatable(available, wanted):
    drawn = sample_sequences(available, wanted, seed=5)
    assert len(drawn) == min(available, wanted)
    assert (drawn.diff() > 0).all()
    assert drawn.min() >= 0
    assert drawn.max() < available
    assert torch.equal(drawn, sample_sequences(available, wanted, seed=5))


def test_samples_of_other_seeds_differ_and_reach_every_sequence():
    samples = [tuple(sample_sequences(20, 5, seed).tolist()) for seed in range(40)]
    assert len(set(samples)) > 30
    assert {number for sample in samples for number in sample} == set(range(20))
