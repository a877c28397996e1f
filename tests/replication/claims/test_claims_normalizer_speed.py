"""The claims about Explicit Sparse Transformer's speed: their verdicts follow from the table."""

import pandas as pd
import pytest
from worlds import judged

from replication.claims.normalizer_speed import TESTS

COLUMNS = ["train_tokens_per_second", "decode_tokens_per_second", "bleu"]
# A world in which all claims hold.
WORLD = {
    ("softmax", "torch"): (1000.0, 500.0, 35.0),
    ("topk", "sparselib"): (900.0, 480.0, 35.6),
    ("sparsemax", "sparselib"): (440.0, 230.0, 35.2),
    ("sparsemax", "entmax"): (300.0, 200.0, 35.3),
    ("entmax15", "sparselib"): (450.0, 240.0, 35.6),
    ("entmax15", "entmax"): (300.0, 200.0, 35.4),
    ("entmax_alpha", "sparselib"): (200.0, 47.0, 35.1),
    ("entmax_alpha", "entmax"): (100.0, 30.0, 35.0),
}


def verdicts(folder, point=None, column=None, value=None) -> pd.DataFrame:
    index = pd.MultiIndex.from_tuples(WORLD, names=["contender", "implementation"])
    table = pd.DataFrame(WORLD.values(), index=index, columns=COLUMNS)
    if point is not None:
        table.loc[point, column] = value
    return judged(folder, {"normalizer_speed/speed.csv": table.reset_index()}, TESTS)


def test_where_all_claims_hold_the_ledger_says_so(tmp_path):
    table = verdicts(tmp_path)
    assert (table["verdict"] == "holds").all()
    assert (table["seeds"] == 1).all()
    assert table["mean"].tolist() == pytest.approx([480 / 230, 480 / 47, 900 / 440, 0.0])


@pytest.mark.parametrize(
    ("claim", "point", "column", "value"),
    [
        ("est-speed-inference-sparsemax", ("sparsemax", "sparselib"), "decode_tokens_per_second", 241.0),
        ("est-speed-inference-sparsemax", ("sparsemax", "entmax"), "decode_tokens_per_second", 241.0),
        ("est-speed-inference-entmax-alpha", ("entmax_alpha", "sparselib"), "decode_tokens_per_second", 49.0),
        ("est-speed-inference-entmax-alpha", ("entmax_alpha", "entmax"), "decode_tokens_per_second", 49.0),
        ("est-speed-training-sparsemax", ("sparsemax", "entmax"), "train_tokens_per_second", 451.0),
        ("est-speed-bleu", ("entmax_alpha", "entmax"), "bleu", 35.7),
        ("est-speed-bleu", ("sparsemax", "sparselib"), "bleu", 35.7),
    ],
)
def test_the_better_implementation_of_a_rival_decides(tmp_path, claim, point, column, value):
    table = verdicts(tmp_path, point, column, value)
    assert table.loc[claim, "verdict"] == "fails"
    assert (table.drop(claim)["verdict"] == "holds").all()


def test_a_better_softmax_changes_nothing(tmp_path):
    assert (verdicts(tmp_path, ("softmax", "torch"), "bleu", 40.0)["verdict"] == "holds").all()


@pytest.mark.parametrize("claim", TESTS)
def test_both_implementations_are_named(tmp_path, claim):
    numbers = verdicts(tmp_path).loc[claim, "numbers"]
    assert "sparselib" in numbers
    assert "entmax" in numbers


def test_without_a_table_nothing_is_tested(tmp_path):
    (tmp_path / "normalizer_speed").mkdir()
    table = judged(tmp_path, {}, TESTS)
    assert (table["verdict"] == "untested at this scale").all()
