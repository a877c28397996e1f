"""Coreference and parts of speech, token by token."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from replication.graphs.analysis import coreference_by_head, coreferent_pairs, mentions, tags_over_clusters
from sparselib.dense_attention import attention_weights
from sparselib.projections import Projection

TAGS = ["NOUN", "VERB", "DET"]


def looped_mentions(chain):
    """Each mention of a row as its positions: maximal runs of one chain."""
    found = []
    for position, number in enumerate(chain):
        if position and chain[position - 1] == number:
            found[-1].append(position)
        else:
            found.append([position])
    return [mention for mention in found if chain[mention[0]] >= 0]


def looped_pairs(chain):
    spans = looped_mentions(chain)
    return {(i, j) for a in spans for b in spans if a != b and chain[a[0]] == chain[b[0]] for i in a for j in b}


chains_of_rows = st.lists(st.integers(-1, 3), min_size=1, max_size=15)


@given(chains_of_rows)
@settings(deadline=None)
def test_mentions_are_maximal_runs(chain):
    number = mentions(torch.tensor(chain)).tolist()
    assert [own == -1 for own in number] == [own < 0 for own in chain]
    distinct = {own for own in number if own >= 0}
    assert sorted([p for p, own in enumerate(number) if own == one] for one in distinct) == looped_mentions(chain)


@given(chains_of_rows)
@settings(deadline=None)
def test_coreferent_pairs_are_other_mentions_of_the_chain(chain):
    assert {*map(tuple, coreferent_pairs(torch.tensor(chain)).nonzero().tolist())} == looped_pairs(chain)


def test_rows_of_a_batch_do_not_touch():
    chains = torch.tensor([[0, -1, 0, 0], [0, 0, 1, 0]])
    for batched, row in zip(coreferent_pairs(chains), chains, strict=True):
        assert torch.equal(batched, coreferent_pairs(row))


def test_a_mention_of_several_tokens_is_no_coreference_with_itself():
    assert coreferent_pairs(torch.tensor([2, 2, -1, 2])).nonzero().tolist() == [[0, 3], [1, 3], [3, 0], [3, 1]]


def drawn_labels(count, n, highest):
    """Of a whole split, -1 outside every chain or tag."""
    return torch.randint(-1, highest + 1, (count, n), generator=torch.Generator().manual_seed(3))


def looped_coreference(graphs, chains):
    mass, chance, tokens = [0.0] * graphs.heads, 0.0, 0
    for index, number in enumerate(graphs.sequence.tolist()):
        batch = graphs.batch(index, index + 1)
        weights = attention_weights(batch.q.double(), batch.k.double(), batch.visible)[0]
        n = int(batch.lengths)
        pairs = looped_pairs(chains[number].tolist()[:n])
        for i in range(n):
            seen = i + 1 if graphs.causal else n
            others = [j for j in range(seen) if (i, j) in pairs]
            if others:
                tokens += 1
                chance += len(others) / seen
                for head in range(graphs.heads):
                    mass[head] += sum(weights[head, i, j].item() for j in others)
    return [value / tokens for value in mass], chance / tokens, tokens


FULL, RAGGED = [9, 9, 9, 9], [9, 4, 1, 7]


@pytest.mark.parametrize(
    ("lengths", "causal", "batch_size"),
    [
        (FULL, False, 1),
        (FULL, False, 3),
        (RAGGED, False, 1),
        (RAGGED, False, 3),
        (FULL, True, 3),
    ],
)
def test_coreference_by_head_equals_its_loop(graphs_of, lengths, causal, batch_size):
    graphs = graphs_of(lengths, causal=causal, sequence=torch.tensor([1, 4, 5, 8]))
    chains = drawn_labels(10, 12, 1)
    table = coreference_by_head(graphs, chains, batch_size)
    mass, chance, tokens = looped_coreference(graphs, chains)
    assert table["head"].tolist() == [0, 1]
    assert table["mass"].tolist() == pytest.approx(mass, abs=1e-6)
    assert table["chance"].tolist() == pytest.approx([chance] * 2)
    assert table["tokens"].tolist() == [tokens] * 2


def test_attention_that_is_uniform_has_the_mass_of_chance(graphs_of):
    q = torch.zeros(2, 2, 9, 4)
    table = coreference_by_head(graphs_of([9, 9], q=q, k=q), drawn_labels(2, 9, 1))
    assert table["mass"].tolist() == pytest.approx(table["chance"].tolist())
    assert (table["chance"] > 0).all()


def test_without_coreference_there_is_no_mass(graphs_of):
    table = coreference_by_head(graphs_of([5, 5]), torch.full((2, 5), -1))
    assert table[["mass", "chance", "tokens"]].to_numpy().tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize("batch_size", [1, 3, 8])
@pytest.mark.parametrize("lengths", [FULL, RAGGED])
def test_tags_over_clusters_equal_their_loop(graphs_of, lengths, batch_size):
    graphs = graphs_of(lengths, sequence=torch.tensor([1, 4, 5, 8]))
    generator = torch.Generator().manual_seed(0)
    projection = Projection(torch.randn(2, 4, 3, generator=generator), torch.randn(2, 3, generator=generator))
    centroids = torch.randn(2, 5, 3, generator=generator)
    tags = drawn_labels(10, 12, 2)
    table = tags_over_clusters(graphs, projection, centroids, tags, TAGS, batch_size)
    expected = dict.fromkeys(
        ((side, head, tag, c) for side in ("query", "key") for head in (0, 1) for tag in TAGS for c in range(5)), 0
    )
    for index, number in enumerate(graphs.sequence.tolist()):
        batch = graphs.batch(index, index + 1)
        for side, x in (("query", projection(batch.q)), ("key", projection(batch.k))):
            for head in (0, 1):
                for i in range(int(batch.lengths)):
                    tag = int(tags[number, i])
                    nearest = int((centroids[head] - x[0, head, i]).square().sum(-1).argmin())
                    if tag >= 0:
                        expected[side, head, TAGS[tag], nearest] += 1
    columns = ["side", "head", "tag", "cluster"]
    assert table.set_index(columns)["count"].to_dict() == expected
    for row in table.to_dict("records"):
        total = sum(expected[row["side"], row["head"], row["tag"], cluster] for cluster in range(5))
        assert total > 0
        assert row["share"] == pytest.approx(row["count"] / total)


def test_a_tag_that_does_not_occur_has_no_share(graphs_of):
    projection = Projection(torch.eye(4).expand(2, 4, 4), torch.zeros(2, 4))
    tags = torch.zeros(2, 5, dtype=torch.int8)
    table = tags_over_clusters(graphs_of([5, 5]), projection, torch.zeros(2, 3, 4), tags, TAGS)
    assert (table.query("tag != 'NOUN'")[["count", "share"]] == 0).all(axis=None)
    assert table.query("tag == 'NOUN'")["count"].sum() == 2 * 2 * 10
