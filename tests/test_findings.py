"""Numbers behind the sentences on what was found."""

from pathlib import Path

import numpy as np

from replication.claims.curves import Curves, Points
from replication.results.budgets import Budget
from replication.tables import findings


def flat(height):
    """A method of two student seeds that recalls so much around the only budget."""
    return [Points(np.array([0.09, 0.11]), np.array([[height, height]]))] * 2


def test_a_difference_over_models_has_an_interval_over_models_and_leaves_out_unmeasured_ones(monkeypatch):
    budgets = [Budget(0.1, "1 x gold")]
    made = {
        "one": Curves({"near": flat(51.0), "far": flat(50.0)}, 0.1, budgets),
        "two": Curves({"near": flat(53.0), "far": flat(50.0)}, 0.1, budgets),
        "coarse": Curves({"near": [Points(np.array([0.5]), np.array([[99.0]]))], "far": flat(50.0)}, 0.1, budgets),
    }
    monkeypatch.setattr(findings, "recall_curves", lambda folder: made[folder.name])
    found = findings._over_models({name: Path(name) for name in made}, "near", ("far",), "1 x gold", "2 x gold")
    # Student's critical value for one degree of freedom, times a standard error of 1.
    assert found == "Points of recall, near less each: far 2 (-10.7 to 14.7) over 2 models at 1 x gold"
