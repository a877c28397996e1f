"""A cluster without any query, or without any key, makes nothing attend to anything."""

import pandas as pd
import pytest
from made_graphs import CONFIGURATION
from worlds import judged_alone

from replication.claims.premises import MEASURES

CLAIM = "mlm-cluster-of-verbs-and-nouns"


@pytest.mark.parametrize("empty", ["query", "key"])
def test_a_cluster_without_a_side_is_not_one_of_verbs_and_nouns(tmp_path, empty, monkeypatch):
    """Cluster 1 has most verbs, nouns and auxiliaries of the other side; cluster 0 holds them on both sides."""
    counts = {0: 40, 1: 60, 2: 0}
    rows = [
        {"layer": 0, "head": 0, "side": side, "tag": tag, "cluster": cluster, "count": count, "share": 0.1}
        for side in ("query", "key")
        for tag in ("VERB", "NOUN", "AUX")
        for cluster, count in (counts if side != empty else {0: 100, 1: 0, 2: 0}).items()
    ]
    rows += [
        {"layer": 0, "head": 0, "side": side, "tag": "ADP", "cluster": 2, "count": 900, "share": 1.0}
        for side in ("query", "key")
    ]
    monkeypatch.setitem(MEASURES["masked_lm"], "auxiliaries", lambda folder: {"": 100.0})
    row = judged_alone(tmp_path, {"config.yaml": CONFIGURATION, "masked_lm/tags.csv": pd.DataFrame(rows)}, CLAIM)
    assert "cluster 0 of 3" in row["numbers"]
    assert row["effect"] == pytest.approx(40.0 if empty == "query" else 100.0)
