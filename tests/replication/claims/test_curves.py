"""Curves compared at equal budgets, on points small enough to do by hand."""

import numpy as np
import pandas as pd
import pytest

from replication.claims.comparison import in_words, leads
from replication.claims.curves import above, curves
from replication.claims.finding import DEPENDS, FAILS, HOLDS, UNDECIDED, UNTESTED
from replication.claims.rule import Rule
from replication.claims.scores import Units
from replication.config.budgets import Budgets
from replication.results.budgets import budgets_of

#: Share of the gold graph: budgets at 0.1, 0.2 and 0.5 decide.
GOLD = 0.1
NAMES = ["1 x gold", "2 x gold", "5 x gold"]
RULE = Rule(">=", 0.0)
#: Shares with points on both sides of each budget.
SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.6)


def table_of(methods, seeds, spread):
    rows = [
        (seed, name, "", 1 - share, score + spread * seed * (name == "a"))
        for seed in seeds
        for name, points in methods.items()
        for share, score in points
    ]
    return pd.DataFrame(rows, columns=["seed", "method", "setting", "sparsity", "score"])


def made(methods, seeds=(0, 1, 2), spread=0.01, gold=GOLD):
    """``{method: [(share, score), ...]}``; method a scores a hundredth more with each seed."""
    table = table_of(methods, seeds, spread)
    budgets = budgets_of(gold, Budgets(gold_multiples=[1, 2, 5], shares=[0.3]))
    return curves(table, table["score"].to_numpy()[None], gold, budgets)


def line(slope=10.0, more=None):
    return [(share, slope * share + (more or {}).get(share, 0.0)) for share in SHARES]


def verdict(methods, **how):
    return RULE.judge(leads(made(methods, **how), ["a"], [name for name in methods if name != "a"], NAMES))[0]


def test_methods_are_compared_at_each_budget_that_decides():
    ahead = line(more={0.1: 1.0, 0.2: 2.0, 0.5: 3.0})
    finding = leads(made({"a": ahead, "b": line()}, spread=0.0), ["a"], ["b"], NAMES)
    assert list(finding.at) == NAMES
    effects = [effect for one in finding.at.values() for effect in one.effects]
    assert [effect.where for effect in effects] == [
        "10 % of the pairs (1 x gold)", "20 % of the pairs (2 x gold)", "50 % of the pairs (5 x gold)",
    ]  # fmt: skip
    assert effects[0].value == pytest.approx(1.0)
    assert effects[-1].value == pytest.approx(3.0)
    assert effects[0].n == "this model: 3 student seeds"


def test_a_claim_holds_or_fails_if_it_does_at_each_budget():
    assert verdict({"a": line(more=dict.fromkeys(SHARES, 1.0)), "b": line()}) == HOLDS
    assert verdict({"a": line(more=dict.fromkeys(SHARES, -1.0)), "b": line()}) == FAILS


def test_a_claim_that_holds_at_one_budget_and_fails_at_another_depends_on_the_budget():
    crossing = {0.05: -2.0, 0.1: -2.0, 0.2: 0.0, 0.3: 1.0, 0.5: 2.0, 0.6: 2.0}
    methods = {"a": line(more=crossing), "b": line()}
    assert verdict(methods) == DEPENDS
    # Intervals of single budgets would do, simultaneous ones are too wide.
    assert verdict(methods, spread=0.6) == UNDECIDED


def test_a_budget_without_points_on_both_sides_within_a_quarter_is_not_measured():
    apart = [(0.05, 0.5), (0.1, 1.0), (0.2, 2.0), (0.3, 3.0), (0.39, 3.9), (0.64, 6.4)]
    finding = leads(made({"a": line(more=dict.fromkeys(SHARES, 1.0)), "b": apart}), ["a"], ["b"], NAMES)
    assert RULE.judge(finding) == (UNTESTED, None)
    assert finding.at["1 x gold"].missing == []
    assert finding.at["5 x gold"].missing == ["at 50 % of the pairs (5 x gold) these have no points on both sides: b"]
    near = [*apart[:-1], (0.41, 4.1), (0.62, 6.2)]
    assert verdict({"a": line(more=dict.fromkeys(SHARES, 1.0)), "b": near}) == HOLDS


def test_a_method_that_starts_above_a_budget_is_named_with_settings_that_would_reach_it():
    table = table_of({"a": line(), "b": line()[2:]}, (0, 1), 0.01)
    table.loc[table["method"] == "b", "setting"] = "buckets=64, rounds=1"
    compared = curves(table, table["score"].to_numpy()[None], GOLD, budgets_of(GOLD, Budgets()))
    (missing,) = leads(compared, ["a"], ["b"], NAMES).at["1 x gold"].missing
    assert missing.endswith("b (starts at 20 %, needs buckets above 64, smaller windows)")


@pytest.mark.parametrize(("last", "is_compared"), [(0.202, True), (0.4, False)])
def test_a_method_that_cannot_get_sparser_is_compared_at_its_smallest_budget(last, is_compared):
    """b's graph has 0.2 of the pairs with 64 buckets, and with 32 `last`, so that more buckets hardly help, or do."""
    rows = [(seed, "a", "", 0, 1 - share, score + 1) for seed in (0, 1) for share, score in line()]
    rows += [
        (seed, "b", f"buckets={buckets}", window, 1 - share, 10 * share)
        for seed in (0, 1)
        for buckets, window, share in ((32, 0, last), (64, 0, 0.2), (64, 9, 0.3), (64, 11, 0.5))
    ]
    table = pd.DataFrame(rows, columns=["seed", "method", "setting", "window", "sparsity", "score"])
    compared = curves(table, table["score"].to_numpy()[None], GOLD, budgets_of(GOLD, Budgets()))
    effects = leads(compared, ["a"], ["b"], NAMES).at["1 x gold"].effects
    assert [(effect.what, effect.where) for effect in effects] == [
        ("a - b, as sparse as b gets", "20 % of the pairs (2 x gold)")
    ] * is_compared


def test_budgets_above_half_of_the_pairs_do_not_decide():
    finding = leads(made({"a": line(), "b": line()}, gold=0.3), ["a"], ["b"], NAMES)
    assert list(finding.at) == ["1 x gold"]


def test_methods_without_a_point_are_missing():
    finding = leads(made({"a": line()}), ["a"], ["b"], NAMES)
    assert finding.every_missing() == ["no point of b"]
    assert RULE.judge(finding) == (UNTESTED, None)


def test_words_say_where_a_method_is_ahead_level_and_behind():
    more = {0.05: -2.0, 0.1: -2.0, 0.2: 0.0, 0.3: 1.0, 0.5: 2.0, 0.6: 2.0}
    (note,) = leads(made({"a": line(more=more), "b": line()}, spread=0.003), ["a"], ["b"], NAMES).notes
    assert note == (
        "a: ahead of b from 50 to 30 % of the pairs, level with b at 20 % of the pairs (2 x gold),"
        " behind b at 10 % of the pairs (1 x gold)"
    )
    (note,) = leads(made({"a": line(), "b": line()}, seeds=[0]), ["a"], ["b"], NAMES).notes
    assert note.startswith("a: not decided against b from 50 to 10 %")


def test_words_use_simultaneous_intervals():
    """With the interval of one budget, each difference would be ahead; with that of all four, they are level."""
    methods = {"a": line(more=dict.fromkeys(SHARES, 0.5)), "b": line()}
    finding = leads(made(methods, spread=0.2), ["a"], ["b"], NAMES)
    assert all(effect.interval[0] > 0 for effect in finding.every_effect())
    assert "level with b from 50 to 10 %" in finding.notes[0]


def test_variants_of_kmeans_and_reformer_are_named():
    rows = [(0, "sparsefinder-kmeans", f"clusters=4, top_k={k}", s, 1 - s) for k in (1, 2) for s in (0.4, 0.9)] + [
        (0, "reformer", "buckets=4, rounds=1", s, 1 - s) for s in (0.4, 0.9)
    ]
    table = pd.DataFrame(rows, columns=["seed", "method", "setting", "sparsity", "score"])
    compared = curves(table, table["score"].to_numpy()[None], GOLD, budgets_of(GOLD, Budgets()))
    notes = leads(compared, ["sparsefinder-kmeans"], ["reformer"], NAMES).notes
    assert notes[-1] == "sparsefinder-kmeans: 1 or 2 centroids per point; reformer: 1 round"


def test_tables_show_what_the_ledger_compares():
    compared = made({"window": line(), "a": line(more=dict.fromkeys(SHARES, 1.0)), "short": line()[3:]})
    table = above(compared, "window", NAMES)
    assert table.index.tolist() == ["a", "short"]
    (effect,) = leads(compared, ["a"], ["window"], NAMES).at["2 x gold"].effects
    assert table.loc["a", effect.where] == pytest.approx(effect.value)
    assert np.isnan(table.loc["short", effect.where])


def test_an_effect_without_an_interval_is_told_by_its_number():
    methods = {"a": line(more=dict.fromkeys(SHARES, 1.0)), "b": line()}
    effects = leads(made(methods, seeds=[0]), ["a"], ["b"], NAMES).every_effect()
    assert {in_words(effect) for effect in effects} == {"1"}


def test_every_resample_has_its_own_curve():
    table = table_of({"a": [(0.05, 1.0), (0.1, 2.0), (0.12, 2.0)]}, (0, 1), 0.0)
    scores = np.stack([table["score"], table["score"].to_numpy() + [3.0, 0.0, 0.0] * 2])
    compared = curves(table, scores, GOLD, budgets_of(GOLD, Budgets()), Units(2, "sequences"))
    assert compared.at("a", compared.named("1 x gold")).tolist() == [[2.0, 2.0], [4.0, 4.0]]
