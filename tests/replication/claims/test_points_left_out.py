"""Points of a model that no longer translates are on no front."""

import pandas as pd
from worlds import write_world

from replication.claims.bleu import bleu_curves


def sparsities(compared):
    """The sparsities of the window's points."""
    (points,) = compared.methods["window"]
    return (1 - points.shares).round(3).tolist()


def points(score, values, **more):
    rows = [{"sparsity": s, score: value, "window": number} for number, (s, value) in enumerate(values.items())]
    return pd.DataFrame(rows).assign(seed=0, method="window", setting="", **more)


def test_a_point_below_half_of_the_full_models_bleu_is_left_out(tmp_path):
    table = points("bleu", {0.2: 30.0, 0.6: 15.0, 0.9: 14.9})
    full = points("bleu", {0.0: 30.0}).assign(method="full", gold_sparsity=0.97)
    write_world(tmp_path, {"replaced/seeds.csv": pd.concat([full, table])})
    compared, of_full = bleu_curves(tmp_path)
    assert list(compared.methods) == ["window"]
    assert sparsities(compared) == [0.2, 0.6]
    assert of_full[0].tolist() == [30.0]
    assert round(compared.gold, 9) == 0.03
