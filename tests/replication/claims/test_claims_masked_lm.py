"""The claims about masked language modelling: their verdicts follow from the tables."""

import pandas as pd
import pytest
from worlds import ALL_CLAIMS, judged, write_world

from replication.claims.masked_lm import TESTS
from replication.results import METHODS

CLAIMS = ALL_CLAIMS[ALL_CLAIMS["id"].isin(TESTS)]
NUMERIC = CLAIMS.dropna(subset="value").set_index("id")
SEEDS = [0, 1, 2]
# A world in which every claim that is no number holds. Every method has one point, at this sparsity.
SPARSITY = 0.8
LEVELS = {
    "sparsefinder-distance": 0.9,
    "sparsefinder-kmeans": 0.85,
    "sparsefinder-quantization": 0.61,
    "routing": 0.7,
    "reformer": 0.5,
    "bigbird": 0.59,
    "longformer": 0.6,
    "window": 0.6,
}
SHARES = {"query VERB": 0.9, "query NOUN": 0.8, "key VERB": 0.7, "key NOUN": 0.8, "key AUX": 0.6}


def tables(
    recall=None,
    perplexity=None,
    *,
    last_seed_only=False,
    sparsity=SPARSITY,
    gap=0.0,
    shares=None,
    other_head=0.0,
    gold_sparsity=0.98,
    full=3.5,
):
    """The tables of a workflow, by path; `recall` and `perplexity` change the level of some methods."""
    found = {}
    for seed in SEEDS:
        changed = seed == SEEDS[-1] or not last_seed_only
        levels = LEVELS | (recall or {} if changed else {})
        sweep = pd.DataFrame(
            {"seed": seed, "layer": 0, "head": head, "method": method, "setting": "{}", "window": 0, "recall": level - shift,
             "sparsity": sparsity, "precision": 0.5, "exact": 0.5, "empty_rows": 0.0, "gold_sparsity": gold_sparsity}
            for method, level in levels.items() for head, shift in ((0, other_head), (1, -other_head))
        )  # fmt: skip
        found[f"masked_lm/sweep/seed{seed}.parquet"] = sweep
        levels = LEVELS | (perplexity or {} if changed else {})
        nats = {"full": 2.0, "gold graph": 2.0 + (gap if changed else 0)} | {m: 4 - x for m, x in levels.items()}
        replaced = pd.DataFrame(
            {"seed": seed, "method": method, "setting": "{}", "window": 0, "nats": value, "sparsity": SPARSITY,
             "perplexity": full} for method, value in nats.items()
        )  # fmt: skip
        found[f"masked_lm/replaced/seed{seed}.csv"] = replaced
    heads = pd.DataFrame(
        {"layer": 0, "head": [0, 1], "mass": [0.1, 0.2], "chance": 0.05, "tokens": 9, "chains": "gold"}
    )
    found["masked_lm/coreference.csv"] = heads
    cells = {cell: share for cell, share in (SHARES | (shares or {})).items() if share is not None}
    tags = pd.DataFrame(
        {"layer": 0, "side": cell.split()[0], "head": 0, "tag": cell.split()[1], "cluster": cluster, "share": value}
        for cell, share in cells.items() for cluster, value in ((0, share), (1, 1 - share))
    )  # fmt: skip
    return found | {"masked_lm/tags.csv": tags}


@pytest.fixture
def verdicts(tmp_path):
    """Write a world, and judge it: the ledger by id."""

    def judge(at_paper_scale=False, folder="results", **world):
        return judged(tmp_path / folder, tables(**world), CLAIMS["id"], at_paper_scale)

    return judge


def test_where_all_claims_hold_the_ledger_says_so(verdicts):
    table = verdicts()
    assert table.index.tolist() == CLAIMS["id"].tolist()
    for name, verdict in table["verdict"].items():
        assert verdict == ("untested at this scale" if name in NUMERIC.index else "holds"), name
    assert (table["seeds"] == [1 if name == "mlm-cluster-of-verbs-and-nouns" else 3 for name in table.index]).all()


@pytest.mark.parametrize("last_seed_only", [False, True])
@pytest.mark.parametrize(
    ("claim", "world"),
    [
        ("mlm-recall-distance-first", {"recall": {"sparsefinder-distance": 0.84}}),
        ("mlm-recall-kmeans-second", {"recall": {"reformer": 0.86}}),
        ("mlm-recall-routing-third", {"recall": {"bigbird": 0.71}}),
        ("mlm-recall-window-hard-to-beat", {"recall": {"longformer": 0.64}}),
        ("mlm-recall-window-hard-to-beat", {"recall": {"bigbird": 0.56}}),
        ("mlm-perplexity-distance-first", {"perplexity": {"sparsefinder-distance": 0.84}}),
        ("mlm-perplexity-kmeans-second", {"perplexity": {"window": 0.86}}),
        ("mlm-perplexity-routing-third", {"perplexity": {"routing": 0.6}}),
        ("sparse-consistency", {"gap": 1e-3}),
        ("sparse-consistency", {"gap": -1e-3}),
        ("mlm-coreference-head", {"recall": {"sparsefinder-kmeans": 0.79}}),
    ],
)
def test_a_claim_fails_where_the_tables_turn_if_only_for_one_seed(verdicts, claim, world, last_seed_only):
    assert verdicts(**world, last_seed_only=last_seed_only).loc[claim, "verdict"] == "fails"


@pytest.mark.parametrize("score", ["recall", "perplexity"])
@pytest.mark.parametrize(
    ("place", "order"),
    [
        ("distance-first", ["sparsefinder-distance"]),
        ("kmeans-second", ["sparsefinder-distance", "sparsefinder-kmeans"]),
        ("routing-third", ["sparsefinder-distance", "sparsefinder-kmeans", "routing"]),
    ],
)
def test_a_leader_is_overtaken_by_every_method_but_those_that_the_paper_puts_before_it(tmp_path, score, place, order):
    for rival in METHODS.keys() - order[-1:]:
        write_world(tmp_path / rival, tables(**{score: {rival: 0.95}}))
        assert TESTS[f"mlm-{score}-{place}"](tmp_path / rival / "masked_lm").holds == (rival in order), rival


@pytest.mark.parametrize("cell", SHARES)
def test_a_cluster_must_hold_most_of_every_tag(verdicts, cell):
    assert verdicts(shares={cell: 0.4}).loc["mlm-cluster-of-verbs-and-nouns", "verdict"] == "fails"


def test_a_head_that_is_not_sparse_enough_does_not_count(verdicts):
    row = verdicts(sparsity=0.74).loc["mlm-coreference-head"]
    assert (row["verdict"], row["mean"]) == ("fails", 0)


def test_the_head_that_follows_coreference_decides_not_its_neighbour(verdicts):
    assert verdicts(other_head=0.1).loc["mlm-coreference-head", "mean"] == pytest.approx(0.95)
    assert verdicts(other_head=-0.1).loc["mlm-coreference-head", "verdict"] == "fails"


def test_without_auxiliary_verbs_their_claim_is_untested(verdicts):
    row = verdicts(shares={"key AUX": None}).loc["mlm-cluster-of-verbs-and-nouns"]
    assert (row["verdict"], row["seeds"]) == ("untested at this scale", 0)


def test_deciding_numbers_are_margins_over_the_best_rival(verdicts):
    table = verdicts(recall={"sparsefinder-distance": 0.95}, last_seed_only=True)
    margins = pd.Series([SPARSITY * (level - 0.85) for level in (0.9, 0.9, 0.95)])
    row = table.loc["mlm-recall-distance-first"]
    assert row["mean"] == pytest.approx(margins.mean())
    assert row["standard_deviation"] == pytest.approx(margins.std())
    assert "next sparsefinder-kmeans" in row["numbers"]
    assert table.loc["mlm-recall-window-hard-to-beat", "mean"] == pytest.approx(0.01 / 0.6)


def test_new_results_in_the_same_folder_are_judged_anew(verdicts):
    assert verdicts().loc["mlm-recall-distance-first", "verdict"] == "holds"
    assert verdicts(recall={"sparsefinder-distance": 0.1}).loc["mlm-recall-distance-first", "verdict"] == "fails"


NUMBERS = {"mlm-gold-sparsity": "gold_sparsity", "mlm-perplexity": "full"}


def test_every_number_is_tried():
    assert set(NUMBERS) == set(NUMERIC.index)


@pytest.mark.parametrize("claim", NUMBERS)
@pytest.mark.parametrize(
    ("away", "verdict"), [(0, "holds"), (0.9, "holds"), (-0.9, "holds"), (1.1, "fails"), (-1.1, "fails")]
)
def test_a_printed_number_is_judged_by_its_tolerance_at_the_papers_scale_only(verdicts, claim, away, verdict):
    measured = NUMERIC.loc[claim, "value"] + away * NUMERIC.loc[claim, "tolerance"]
    world = {NUMBERS[claim]: measured}
    row = verdicts(at_paper_scale=True, **world).loc[claim]
    assert row["verdict"] == verdict
    assert row["mean"] == pytest.approx(measured)
    assert verdicts(folder="smaller", **world).loc[claim, "verdict"] == "untested at this scale"


def test_every_method_of_the_figures_competes():
    assert set(LEVELS) == set(METHODS)
