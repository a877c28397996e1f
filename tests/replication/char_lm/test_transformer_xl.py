"""Transformer-XL against the paper's equations, written as loops; and its loss in segments against the whole."""

import pytest
import torch
from characters import XL, corpus, read, some_text, trained
from torch.nn.functional import cross_entropy

from replication.char_lm.models import build_model
from replication.char_lm.transformer_xl import RelativePositions, sinusoids


@pytest.fixture(scope="module")
def model():
    return trained(XL)


@pytest.mark.parametrize("length", [4, 10])
def test_the_loss_of_segments_equals_the_loss_without(length):
    """In float32 too, as it is trained."""
    ids, model = some_text(41), trained(XL).float()
    inputs, targets = ids[:, :-1], ids[:, 1:]
    whole, parts = (cross_entropy(read(model, inputs, n).mT, targets).item() for n in (40, length))
    assert parts == pytest.approx(whole, abs=1e-5)


def test_training_has_moved_every_parameter(model):
    before = build_model(XL, len(corpus(2)[0]), seed=0)
    for (name, parameter), start in zip(model.named_parameters(), before.parameters(), strict=True):
        assert not torch.equal(parameter, start), name


@pytest.mark.parametrize("top_k", [None, 2])
def test_attention_equals_its_double_loop(top_k):
    """Section 3.3: q·k + q·Wr + u·k + v·Wr, scaled, over the memory and the segment up to the query."""
    model = trained(XL | {"top_k": top_k})
    attention = model.layers[1].attention
    generator = torch.Generator().manual_seed(0)
    context = torch.randn(1, 9, 16, generator=generator, dtype=torch.float64)
    hidden, u, v = context[:, 5:], model.content_bias.squeeze(1), model.place_bias.squeeze(1)
    project = attention.project
    with torch.no_grad():
        found, weights = attention(hidden, context, model.positions(9))
        q, k, value = (
            layer.view(-1, 2, 8)
            for layer in (project.query(hidden[0]), project.key(context[0]), project.value(context[0]))
        )
        expected = torch.zeros(4, 2, 8, dtype=torch.float64)
        for i in range(4):
            for h in range(2):
                scores = []
                for j in range(5 + i + 1):
                    place = torch.tensor([5.0 + i - j], dtype=torch.float64)
                    r = attention.project_place(sinusoids(place, 16)).view(2, 8)[h]
                    scores.append(((q[i, h] + u[h]) @ k[j, h] + (q[i, h] + v[h]) @ r) / 8**0.5)
                scores = torch.stack(scores)
                if top_k is not None:
                    scores[scores < scores.topk(top_k).values[-1]] = -torch.inf
                row = scores.softmax(0)
                torch.testing.assert_close(weights[0, h, i, : 5 + i + 1], row)
                assert (weights[0, h, i, 5 + i + 1 :] == 0).all()
                expected[i, h] = row @ value[: 5 + i + 1, h]
        torch.testing.assert_close(found[0], project.output(expected.flatten(1)))


def test_sinusoids_are_the_formula():
    table = sinusoids(torch.tensor([3.0, 0.0], dtype=torch.float64), 6)
    angles = torch.tensor([3 / 10_000 ** (i / 6) for i in (0, 2, 4)], dtype=torch.float64)
    # Frequencies are computed in float32.
    torch.testing.assert_close(table[0], torch.cat([angles.sin(), angles.cos()]), rtol=0, atol=1e-6)
    assert table[1].tolist() == [0, 0, 0, 1, 1, 1]


def test_positions_run_from_the_farthest_to_the_own(model):
    positions = model.positions(4)
    assert isinstance(positions, RelativePositions)
    torch.testing.assert_close(positions.sinusoids, sinusoids(torch.tensor([3.0, 2, 1, 0], dtype=torch.float64), 16))
