"""Every rule, on tables made so that its claim holds, fails or cannot be decided."""

import re

import pytest
from made import MADE
from made_graphs import CONFIGURATION
from worlds import CLAIMS, judged, judged_alone

from replication.claims.premises import parse
from replication.results.budgets import deciding

#: How far from the threshold effects are made, in the claim's unit; a few per cent of it are their spread over seeds.
STEPS = {"nats": 0.5, "bits": 0.1, "of the bits": 0.1, "times": 0.5, "": 0.3, "of all pairs": 0.002, "of d / r": 0.1}
STEPS |= {
    "bits or share": 0.1,
    "in n": 0.1,
    "of the span": 0.05,
    "of the weight": 0.1,
    "of the words": 0.1,
    "points": 3.0,
    "of perplexity": 0.1,
    "nats or share": 0.3,
}
#: Claims of which nothing is repeated: their rules decide by one number.
SINGLE = {
    "sparse-consistency", "mlm-distance-saves", "mlm-gold-sparsity", "mlm-perplexity",
    "mt-sparse-consistency", "mt-bleu-en-de", "mt-bleu-en-fr", "clm-bits-enwik8", "clm-bits-text8",
    "fac-reach", "fac-edges", "fac-combining-heads",
}  # fmt: skip
#: Claims about one model, of which nothing was resampled: that decides nothing.
ONE_MODEL = {"est-speed-bleu", "mlm-first-layers-are-local"}
#: Claims about a share of what was counted once, whose interval follows from how many these are.
COUNTED = {"mlm-cluster-of-verbs-and-nouns", "retrofit-promise-is-kept"}
#: A rule with a threshold that nothing is below.
EXACT = {
    "mt-sparse-consistency": (0.0, 0.1),
    "sparse-consistency": (0.0, 1e-4),
    "fac-reach": (3.0, 4.0),
    "fac-combining-heads": (100.0, 99.0),
}
#: Effects that made tables come close to only.
ROUGH = {"mt-recall-and-bleu-agree": 0.15, "mt-pairs-alike": 0.02, "mlm-distance-saves": 0.005}
#: Where curves are compared: effects are the same at all budgets that decide.
SHARES = {"1 x gold": 3, "2 x gold": 6, "5 x gold": 15}
_EVERY = "1 x gold, 1.5 x gold, 5 %, 2 x gold, 10 %, 5 x gold, 20 %, 50 %"
ELSEWHERE = {"mt-pairs-alike": f"{_EVERY} in en-de and {_EVERY} in en-fr"}


def places(claim: str) -> list[str]:
    """Where a claim can be decided, in words."""
    if not (budgets := CLAIMS.loc[claim, "budgets"]):
        return [ELSEWHERE.get(claim, "")]
    return [f"{SHARES[b]} % of the pairs ({b})" if "gold" in b else f"{b} of the pairs" for b in deciding(budgets)]


def test_every_claim_has_a_made_world():
    assert set(MADE) == set(CLAIMS.index)


def target(claim: str, verdict: str) -> list[float]:
    """The effect of each of three seeds with which the claim gets this verdict."""
    row = CLAIMS.loc[claim]
    if claim in EXACT:
        return [EXACT[claim][verdict == "fails"]]
    step = STEPS.get(row["unit"], 1.0)
    if claim in ("clm-bits-enwik8", "clm-bits-text8"):
        step = 0.005
    if "mt-bleu-en" in claim:
        step = 0.2
    if verdict == "undecided" and claim in COUNTED:
        return [row["threshold"] + 0.05 * step]
    if verdict == "undecided":
        return [row["threshold"] + step * part for part in (-0.9, 0.1, 1.0)]
    side = 1 if (row["relation"] == ">=") == (verdict == "holds") else -1
    return [row["threshold"] + side * step * (1 + 0.03 * part) for part in (-1, 0, 1)]


@pytest.mark.parametrize("verdict", ["holds", "fails", "undecided"])
@pytest.mark.parametrize("claim", MADE)
def test_the_verdict_is_what_the_tables_were_made_for(tmp_path, claim, verdict):
    if verdict == "undecided" and claim in SINGLE:
        pytest.skip("one number decides")
    values = target(claim, verdict)
    row = judged_alone(tmp_path, {"config.yaml": CONFIGURATION} | MADE[claim](values), claim)
    assert row["verdict"] == ("undecided" if claim in ONE_MODEL else verdict), row
    wanted = (
        values[0] if claim in SINGLE | ONE_MODEL | COUNTED and "clm-bits" not in claim else sum(values) / len(values)
    )
    assert row["effect"] == pytest.approx(wanted, abs=ROUGH.get(claim, 1e-5 + 1e-4 * abs(wanted)))
    assert (row["interval"] == "") == (claim in SINGLE | ONE_MODEL)
    assert row["n"].endswith("point estimate") == (claim in SINGLE)
    assert row["n"].endswith("no interval") == (claim in ONE_MODEL)
    assert row["where"] in places(claim)
    has_other_choices = places(claim) != [""] or claim not in SINGLE | ONE_MODEL | COUNTED
    assert row["stability"] == ("stable" if has_other_choices and verdict != "undecided" else "")


@pytest.mark.parametrize("claim", sorted(set(MADE) - SINGLE - COUNTED))
def test_one_seed_or_model_decides_nothing(tmp_path, claim):
    values = target(claim, "holds")[:1]
    row = judged_alone(tmp_path, {"config.yaml": CONFIGURATION} | MADE[claim](values), claim)
    assert (row["verdict"], row["interval"]) == ("undecided", "")
    assert row["change"].startswith("a second")


@pytest.mark.parametrize("claim", [name for name in MADE if CLAIMS.loc[name, "premise"]])
def test_a_premise_that_is_not_met_makes_it_incomparable(tmp_path, claim, monkeypatch):
    """Each condition in turn is measured just beyond its number."""
    from replication.claims import TASKS, premises

    (task,) = (task for task, tests in TASKS.items() if claim in tests)
    tables = {"config.yaml": CONFIGURATION} | MADE[claim](target(claim, "holds"))
    for condition in parse(CLAIMS.loc[claim, "premise"]):
        away = 0.01 * (condition.number or 1.0)
        beyond = condition.number + (-away if condition.relation == ">=" else away)
        with monkeypatch.context() as patched:
            patched.setitem(premises.MEASURES[task], condition.name, lambda folder, value=beyond: {"here": value})
            row = judged_alone(tmp_path, tables, claim)
        assert row["verdict"] == "not comparable"
        assert f"({beyond:.3g} in here, {away:.3g} outside)" in row["premise"]
        assert row["change"] == f"a run that meets the premise: {CLAIMS.loc[claim, 'premise']}"


def test_without_tables_everything_is_untested(tmp_path):
    table = judged(tmp_path, {})
    assert (table["verdict"] == "untested").all()
    assert table["effect"].isna().all()


@pytest.mark.parametrize("claim", MADE)
def test_without_one_kind_of_its_tables_a_claim_is_not_judged_or_did_not_need_it(tmp_path, claim):
    tables = {"config.yaml": CONFIGURATION} | MADE[claim](target(claim, "holds"))
    kind = {name: re.sub(r"seed\d+|enwik8|text8|en-de|en-fr", "*", name) for name in tables}
    for number, left_out in enumerate(sorted(set(kind.values()))):
        rest = {name: table for name, table in tables.items() if kind[name] != left_out}
        row = judged_alone(tmp_path / str(number), rest, claim)
        known = "undecided" if claim in ONE_MODEL else "holds"
        assert row["verdict"] in (known, "not comparable", "untested"), (left_out, row)
