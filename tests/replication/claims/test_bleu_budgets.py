"""BLEU is compared at the budgets of the recall sweep, with every measured point."""

import pandas as pd
import pytest
from worlds import write_world

from replication.claims.bleu import bleu_curves


def points(score, values, **more):
    rows = [{"sparsity": s, score: value, "window": number} for number, (s, value) in enumerate(values.items())]
    return pd.DataFrame(rows).assign(seed=0, method="window", setting="", **more)


def test_budgets_are_multiples_of_the_sweeps_gold_share_and_poor_points_count(tmp_path):
    swept = points("recall", {0.2: 0.9, 0.9: 0.4}).assign(layer=0, head=0, precision=0.5, exact=0.0, gold_sparsity=0.9)
    table = points("bleu", {0.2: 30.0, 0.9: 1.0})
    full = points("bleu", {0.0: 30.0}).assign(method="full", gold_sparsity=0.97)
    write_world(tmp_path, {"sweep/seeds.csv": swept, "replaced/seeds.csv": pd.concat([full, table])})
    compared, of_full = bleu_curves(tmp_path)
    assert compared.gold == pytest.approx(0.1)
    assert [len(one.shares) for one in compared.methods["window"]] == [2]
    assert of_full[0].tolist() == [30.0]
