"""A reduction over cells of which one is missing gives no number: the others alone would answer another question."""

import pandas as pd
import pytest
from made import MADE
from made_graphs import CONFIGURATION
from worlds import judged_alone

VERBS = "mlm-cluster-of-verbs-and-nouns"


@pytest.mark.parametrize("side", ["query", "key"])
def test_a_cluster_without_queries_or_keys_holds_no_verbs_and_nouns(tmp_path, side):
    tables = MADE[VERBS]([40.0])
    tags = tables["masked_lm/tags.csv"]
    # The second cluster takes all keys, or all queries, of the third one's auxiliaries, and none of the other side.
    other = tags["side"].ne(side)
    moved = tags["tag"].eq("AUX") & tags["cluster"].eq(2) & other
    tags.loc[tags["tag"].eq("AUX") & tags["cluster"].eq(1) & other, "count"] = tags.loc[moved, "count"].sum()
    tags.loc[tags["tag"].isin(["VERB", "NOUN"]) & tags["cluster"].eq(1) & other, "count"] = 50_000
    tags.loc[moved, "count"] = 0
    row = judged_alone(tmp_path, tables, VERBS)
    assert (row["verdict"], row["effect"]) == ("fails", pytest.approx(40.0))
    assert "cluster 0 of 3" in row["numbers"]


@pytest.mark.parametrize(
    ("claim", "method", "count"),
    [
        ("blocks-v1-costs-more", "sparsefinder-v1", 22),
        ("blocks-bigbird-is-faster", "bigbird-softmax", 2),
        ("blocks-two-are-faster-than-22-of-bigbird", "bigbird", 22),
        ("blocks-faster-than-full-entmax", "full-kernel", 256),
    ],
)
def test_a_timing_that_is_missing_at_one_block_size_is_not_left_out_of_a_mean(tmp_path, claim, method, count):
    tables = {"config.yaml": CONFIGURATION} | MADE[claim]([1.5, 1.5, 1.5])
    (name,) = (name for name in tables if name.endswith("timed.csv"))
    timed = tables[name]
    sizes = timed.assign(block_size=4)
    tables[name] = pd.concat([timed, sizes])
    assert judged_alone(tmp_path / "whole", tables, claim)["verdict"] != "untested"
    gone = sizes["method"].eq(method) & sizes["count"].eq(count)
    tables[name] = pd.concat([timed, sizes[~gone]])
    row = judged_alone(tmp_path / "without", tables, claim)
    assert row["verdict"] in ("untested", "fails")
    assert "nothing to compare" in row["numbers"]
