"""Verdicts that other choices change: the row names the choice, and the verdict counts as undecided."""

import pandas as pd
import pytest
from made import MADE
from made_graphs import CONFIGURATION
from worlds import judged_alone

from replication.claims.comparison import leads
from replication.claims.curves import curves
from replication.claims.finding import Finding
from replication.claims.rule import Rule
from replication.claims.scores import over_seeds
from replication.claims.stability import counted, stability
from replication.config.budgets import Budgets
from replication.results.budgets import budgets_of

CLAIM, SWEEP = "mlm-recall-distance-first", "masked_lm/sweep/seeds.csv"
HOLDS = [1.0, 1.01, 0.99]


def judged(folder, change):
    tables = MADE[CLAIM](HOLDS)
    tables[SWEEP] = change(tables[SWEEP])
    return judged_alone(folder, {"config.yaml": CONFIGURATION} | tables, CLAIM)


def test_a_verdict_that_every_choice_leaves_is_stable(tmp_path):
    assert judged(tmp_path, lambda table: table)["stability"] == "stable"


def by_one_setting(table):
    """At 6 % of the pairs, k-means has a setting as good as distance less half a point, and bad ones on both sides."""
    is_kmeans, at_budget = table["method"] == "sparsefinder-kmeans", table["window"] == 4
    assert set((1 - table["sparsity"][at_budget]).round(2)) == {0.06}
    recall = table["recall"].where(~is_kmeans | at_budget, table["recall"] - 0.03)
    return table.assign(recall=recall.where(~is_kmeans | ~at_budget, recall + 0.025))


def test_a_run_whose_verdict_flips_without_half_of_the_settings_says_so(tmp_path):
    """With k-means' good setting at twice the gold share distance is behind there, and without it ahead everywhere."""
    row = judged(tmp_path, by_one_setting)
    assert row["verdict"] == "depends on the budget"
    assert row["stability"] == "changes with the other half of the settings: holds"
    assert counted(row["verdict"], row["stability"]) == "undecided"


def test_a_verdict_that_needs_the_hull_says_so(tmp_path):
    """Distance has a bad setting at each budget, which a mixture of its neighbours replaces."""

    def dented(table):
        is_dented = (table["method"] == "sparsefinder-distance") & table["window"].isin([2, 4, 6])
        # Curves so steep that no point dominates a denser one.
        steep = table["recall"] + 3 * (1 - table["sparsity"])
        return table.assign(recall=steep.where(~is_dented, steep - 0.015))

    row = judged(tmp_path, dented)
    assert row["verdict"] == "holds"
    assert "the Pareto set" in row["stability"]


def test_without_a_seed_only_signs_count_because_two_seeds_have_a_wide_interval(tmp_path):
    """The spread decides with three seeds; with two, it would not."""
    sweep = MADE[CLAIM]([0.9, 1.0, 1.1])[SWEEP]
    row = judged(tmp_path / "three", lambda _: sweep)
    assert (row["verdict"], row["stability"]) == ("holds", "stable")
    two = judged(tmp_path / "two", lambda _: sweep[sweep["seed"] != 1])
    assert two["verdict"] == "undecided"


def test_a_seed_that_changes_the_sign_is_named():
    """Units say that the mean is certain, and one of three seeds makes it positive."""
    table = pd.DataFrame(
        [
            {"seed": seed, "method": name, "setting": "", "sparsity": 1 - share, "score": 10 * share + more}
            for name, of_seeds in (("a", (-1.0, -1.0, 9.0)), ("b", (0.0, 0.0, 0.0)))
            for seed, more in enumerate(of_seeds)
            for share in (0.05, 0.08, 0.1, 0.12, 0.15)
        ]
    )
    compared = curves(table, table["score"].to_numpy()[None], 0.1, budgets_of(0.1, Budgets()))
    finding = leads(compared, ["a"], ["b"], ["1 x gold"])
    assert stability(Rule(">=", 0.0), finding, "holds").endswith("student seed 3 left out: fails")


def test_a_model_that_changes_the_sign_of_a_mean_is_named_and_other_draws_stay():
    """Means of models and of seeds in one finding; without the third model, its mean fails."""
    finding = Finding([over_seeds("a", [-1.0, -1.0, 9.0], "model"), over_seeds("b", [1.0, 2.0, 3.0], "student seed")])
    assert stability(Rule(">=", 0.0), finding, "holds") == "changes with model 3 left out: fails"
    assert stability(Rule(">=", 0.0), Finding(finding.effects[1:]), "holds") == "stable"


@pytest.mark.parametrize("verdict", ["holds", "fails", "depends on the budget"])
def test_unstable_verdicts_count_as_undecided_and_others_as_they_are(verdict):
    assert counted(verdict, "changes with the Pareto set: undecided") == "undecided"
    assert counted(verdict, "stable") == counted(verdict, "") == verdict


def test_premises_and_missing_comparisons_have_no_stability(tmp_path):
    row = judged(tmp_path, lambda table: table[table["method"] != "window"])
    assert (row["verdict"], row["stability"]) == ("untested", "")
    assert counted("untested", "") == "untested"
    assert pd.isna(row["effect"])
