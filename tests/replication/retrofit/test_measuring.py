"""What rules find of what heads need, and how far the output moves: against the model asked by hand."""

import json

import pytest
import torch
from transformers import BertConfig, BertModel

from replication.retrofit.measuring import measure
from replication.retrofit.rules import SelectionRule, clusters, fixed, learned
from replication.retrofit.students import fit_students
from sparselib.huggingface import use_attention
from sparselib.huggingface.gold import gold_rule
from sparselib.huggingface.layers import Layer, observed_layers
from sparselib.normalizers import Entmax

LAYERS, HEADS, N = 2, 4, 24
GRID = {
    "oracle": {"predictor": "TopK", "k": [2, 24]},
    "sparsefinder-distance": {"predictor": "Distance", "threshold": [0.5, 2.0]},
    "sparsefinder-kmeans": {"predictor": "Clustering", "clusters": [2, 3], "top_k": 1},
    "sparsefinder-v2": {"predictor": "ClusteredBlocks", "clusters": 2, "count": 1},
    "gate": {"predictor": "Gate", "count": 2},
    "quest": {"predictor": "Quest", "count": [1, 6]},
    "xattention": {"predictor": "XAttention", "mass": [0.5, 1.0]},
    "vertical-slash": {"predictor": "VerticalSlash", "columns": 2, "diagonals": 2},
    "streaming-llm": {"predictor": "StreamingLLM", "sinks": 1, "window": [3, 24]},
}
STUDENTS = {"dimension": 2, "gate_dimension": 4, "epochs": 1, "gate_epochs": 1, "learning_rate": 0.01, "points": 100}


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 32}
    made = BertModel(BertConfig(vocab_size=60, max_position_embeddings=64, **sizes)).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.25)
    return made


@pytest.fixture(scope="module")
def ids():
    return torch.randint(5, 60, (6, N), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def control(model, ids):
    return use_attention(model, Entmax(1), {"input_ids": ids[:1]})


@pytest.fixture(scope="module")
def rules(model, control, ids):
    gold, layers = gold_rule("mass:0.9"), [Layer() for _ in range(LAYERS)]
    seen = list(zip(*observed_layers(model, control, layers, gold, [{"input_ids": ids}]), strict=True))
    students = [
        fit_students(
            list(of_layer), Entmax(1), block=4, seed=0, **clusters(GRID), **STUDENTS,
        )
        for of_layer in seen
    ]  # fmt: skip
    return [*fixed(GRID, LAYERS, 3, 4), *learned(GRID, students, seen, 3, 4, 0)]


@pytest.fixture(scope="module")
def table(model, control, rules, ids):
    return measure(model, control, rules, ids.split(4), gold_rule("mass:0.9"))


def test_every_point_of_the_grid_is_a_rule_once(rules):
    assert len({(rule.method, rule.setting) for rule in rules}) == len(rules) == 15
    assert {rule.seed for rule in rules if rule.method in ("oracle", "quest", "streaming-llm")} == {-1}
    assert {rule.seed for rule in rules if "sparsefinder" in rule.method or rule.method == "gate"} == {0}


def test_a_row_per_rule_sequence_layer_and_head(table, rules):
    keys = ["method", "setting", "sequence", "layer", "head"]
    assert len(table) == len(rules) * 6 * LAYERS * HEADS
    assert not table.duplicated(keys).any()
    assert table[["recall", "sparsity"]].stack().between(0, 1).all()


def test_recall_and_sparsity_are_those_of_loops(table, model, control, ids):
    """StreamingLLM of three and one sink: positions alone say what it gives, softmax what is needed."""
    weights = []
    with control.observing(
        lambda call, mask: weights.append((call.q @ call.k.mT / call.q.shape[-1] ** 0.5).softmax(-1))
    ):
        with torch.no_grad():
            model(ids)
    rows = table[(table["method"] == "streaming-llm") & (table["setting"] == json.dumps({"sinks": 1, "window": 3}))]
    for row in rows[rows["sequence"].isin([0, 5])].itertuples():
        found = needed = given = 0
        for i, of_query in enumerate(weights[row.layer][row.sequence, row.head].tolist()):
            mass = 0.0
            for j in sorted(range(N), key=lambda j: -of_query[j]):
                if mass >= 0.9:
                    break
                mass += of_query[j]
                needed += 1
                found += j == 0 or abs(i - j) < 3
            given += sum(j == 0 or abs(i - j) < 3 for j in range(N))
        assert row.recall == pytest.approx(found / needed)
        assert row.sparsity == pytest.approx(1 - given / N**2)


def test_whatever_keeps_all_pairs_moves_nothing(table):
    everything = table[table["sparsity"].groupby([table["method"], table["setting"]]).transform("max") == 0]
    assert {"oracle", "streaming-llm", "quest", "xattention"} <= set(everything["method"])
    assert (everything["recall"] == 1).all()
    assert everything["drift"].max() < 1e-5
    assert everything["cosine"].min() > 1 - 1e-6


def test_drift_is_that_of_the_model_held_to_the_rule(table, model, control, rules, ids):
    rule = next(rule for rule in rules if rule.method == "sparsefinder-distance")
    with torch.no_grad(), control.restricted_to(rule.graph):
        moved = model(ids).last_hidden_state
    with torch.no_grad():
        own = model(ids).last_hidden_state
    rows = table[(table["method"] == rule.method) & (table["setting"] == rule.setting)].groupby("sequence")
    drift = [((a - b).square().sum() / a.square().sum()).sqrt().item() for a, b in zip(own, moved, strict=True)]
    assert rows["drift"].first().tolist() == pytest.approx(drift, rel=1e-4)
    assert min(drift) > 0.01
    cosine = [
        torch.dot(a.mean(0), b.mean(0)) / a.mean(0).norm() / b.mean(0).norm() for a, b in zip(own, moved, strict=True)
    ]
    assert rows["cosine"].first().tolist() == pytest.approx([x.item() for x in cosine], rel=1e-4)


def test_rules_do_not_look_at_each_other(model, control, rules, ids):
    alone = measure(model, control, rules[3:4], [ids], gold_rule("mass:0.9"))
    beside = measure(model, control, [rules[-1], rules[3]], [ids], gold_rule("mass:0.9"))
    beside = beside[beside["method"] == rules[3].method].reset_index(drop=True)
    assert alone.drop(columns="drift").equals(beside.drop(columns="drift"))


def test_an_unknown_predictor_is_named():
    with pytest.raises(ValueError, match=r"mine: `predictor` must be one of TopK.*got 'Magic'"):
        list(fixed({"mine": {"predictor": "Magic"}}, 2, 3, 4))


def test_the_whole_graph_finds_everything(model, control, ids):
    rule = SelectionRule("all", "{}", -1, lambda call: call.visible.expand(-1, call.q.shape[1], -1, -1))
    found = measure(model, control, [rule], [ids], gold_rule("top:3"))
    assert (found["recall"] == 1).all()
    assert (found["sparsity"] == 0).all()
