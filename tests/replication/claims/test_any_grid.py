"""Whatever a profile measures, the ledger is written and curves are drawn: what is missing is untested, and not drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made import MADE
from made_graphs import CONFIGURATION
from worlds import CLAIMS, judged_alone

from replication import plots
from replication.claims import VERDICTS, scores
from replication.predictors.methods import METHODS, RULES

#: What a grid may lack: whole methods or forms, and windows, budgets or seeds of those that it has.
KEYS = ["method", "form", "window", "budget", "count", "seed", "setting"]
#: The model itself is always measured.
OWN = ["full", "gold graph"]


@pytest.fixture(autouse=True, scope="module")
def few_resamples():
    """Intervals are not what is asked here."""
    with pytest.MonkeyPatch.context() as patched:
        scores.resampling.cache_clear()
        patched.setattr(scores, "RESAMPLES", 5)
        yield
    scores.resampling.cache_clear()


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_grid_that_lacks_some_rows_is_judged_or_untested(tmp_path_factory, data):
    claim = data.draw(st.sampled_from(sorted(MADE)))
    threshold = CLAIMS.loc[claim, "threshold"]
    tables = {"config.yaml": CONFIGURATION} | MADE[claim]([threshold + 0.01, threshold + 0.02])
    kept = {}
    for name, table in tables.items():
        # Blocks have all methods at every K, and the whole model beside them.
        blocks = "blocks" in name
        keys = KEYS if isinstance(table, pd.DataFrame) else []
        for key in ["seed"] if blocks else keys:
            if key in table and table[key].nunique(dropna=False) > 1:
                values = sorted(table[key].unique(), key=str)
                chosen = data.draw(st.lists(st.sampled_from(values), min_size=1, unique_by=str), label=f"{name}: {key}")
                own = table["method"].isin(OWN) if "method" in table and key != "seed" else False
                table = table[table[key].isin(chosen) | own]
        if not (isinstance(table, pd.DataFrame) and table.empty):
            kept[name] = table
    row = judged_alone(tmp_path_factory.mktemp("grid"), kept, claim)
    assert row["verdict"] in VERDICTS
    assert row["numbers"]
    assert row["verdict"] == "untested" or np.isfinite(row["effect"])


@st.composite
def points(draw, names):
    """Points of some methods, of one seed or two, some of them all alike."""
    methods = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    seeds = range(draw(st.integers(1, 2)))
    count = draw(st.integers(1, 3))
    shares = st.floats(0, 1).map(lambda x: round(x, 2))
    return pd.DataFrame(
        [
            {"seed": seed, "method": method, "setting": str(number), "window": 0}
            | {"sparsity": draw(shares), "recall": draw(shares), "drift": draw(shares)}
            for method in methods
            for seed in seeds
            for number in range(count)
        ]
    )


@pytest.mark.filterwarnings("ignore:No artists with labels")
@given(table=points(list(METHODS)))
@settings(max_examples=25, deadline=None)
def test_curves_of_any_methods_are_drawn(table):
    figure, axes = plt.subplots()
    plots.tradeoff(axes, table, "recall", 0.1)
    labels = set(axes.get_legend_handles_labels()[1])
    assert {METHODS[method].label for method in table["method"]} <= labels
    plt.close(figure)


@given(table=points(["sparsified", *RULES]))
@settings(max_examples=25, deadline=None)
def test_rules_of_any_grid_are_drawn(table):
    figure, axes = plt.subplots()
    if set(table["method"]) == {"sparsified"}:
        return
    for measure in ("recall", "drift"):
        plots.rules(axes, table, measure)
    labels = set(axes.get_legend_handles_labels()[1])
    assert {RULES[method].label if method in RULES else "each head tuned" for method in table["method"]} <= labels
    plt.close(figure)
