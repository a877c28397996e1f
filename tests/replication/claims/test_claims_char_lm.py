"""The claims about character models: their verdicts follow from the tables of every corpus."""

import pandas as pd
import pytest
from worlds import ALL_CLAIMS, judged, write_world

from replication.claims.char_lm import TESTS
from replication.results import CHARACTER_MODELS

CLAIMS = ALL_CLAIMS[ALL_CLAIMS["id"].isin(TESTS)].set_index("id")
NUMERIC = CLAIMS.dropna(subset="value")
SEEDS, CORPORA = [0, 1], ["enwik8", "text8"]
# A world in which all claims hold: bits and positions of every model, as the paper prints them for enwik8.
WORLD = {
    "block": (1.11, 256.0),
    "transformer-xl": (1.07, 768.0),
    "transformer-xl-top-k": (1.05, 64.0),
    "adaptive-span": (1.02, 390.0),
    "adaptive-span-top-32": (1.02, 32.0),
    "adaptive-span-top-8": (1.025, 8.0),
}
# Mean spans at 1.4, 1.3, 1.2 and 1.1 bits.
SPANS = {
    "adaptive-span": (151, 210, 295, 370),
    "adaptive-span-top-32": (117, 170, 227, 319),
    "adaptive-span-top-8": (78, 101, 141, 193),
}


def tables(changes=None, spans=None, *, corpus="text8", last_seed_only=False, longest=8192, leave_out=None):
    """The tables of a workflow, by path; `changes` and `spans` are other numbers of some models, on one corpus."""
    found = {}
    for this in CORPORA:
        for seed in SEEDS:
            changed = this == corpus and (seed == SEEDS[-1] or not last_seed_only)
            for model, (bits, positions) in (WORLD | (changes or {} if changed else {})).items():
                if model == leave_out:
                    continue
                at = f"char_lm/{this}/models/{model}/seed{seed}"
                row = {"memory_length": longest, "bits_per_character": bits, "attended_positions": positions}
                found[f"{at}/measured.csv"] = pd.DataFrame([row])
                log = pd.DataFrame({"valid_bits": [1.4, 1.3, 1.2, 1.1]})
                if model in SPANS:
                    log["mean_span"] = (SPANS | (spans or {} if changed else {}))[model]
                found[f"{at}/log.csv"] = log
    return found


@pytest.fixture
def verdicts(tmp_path):
    def judge(*changes, at_paper_scale=False, **world):
        return judged(tmp_path, tables(*changes, **world), ALL_CLAIMS["id"], at_paper_scale)

    return judge


def test_where_all_claims_hold_the_ledger_says_so(verdicts):
    table = verdicts()
    for name, row in table.loc[list(CLAIMS.index)].iterrows():
        numeric = name in NUMERIC.index
        assert row["verdict"] == ("untested at this scale" if numeric else "holds"), (name, row["numbers"])
        assert row["seeds"] == 2
        if not numeric:
            assert all(f"{corpus}: " in row["numbers"] for corpus in CORPORA)
    others = table.drop(index=CLAIMS.index)
    assert (others["verdict"] == "untested at this scale").all()


FAILING = [
    ("clm-xl-beats-block", {"block": (1.07, 256.0)}, None),
    ("clm-span-beats-xl", {"adaptive-span": (1.07, 390.0)}, None),
    ("clm-span-beats-xl", {"adaptive-span": (1.02, 800.0)}, None),
    ("clm-xl-top-k-no-worse", {"transformer-xl-top-k": (1.071, 64.0)}, None),
    ("clm-xl-top-k-no-worse", {"transformer-xl-top-k": (1.05, 768.0)}, None),
    ("clm-span-top-8-no-worse", {"adaptive-span-top-8": (1.031, 8.0)}, None),
    ("clm-span-top-8-fewer-positions", {"adaptive-span": (1.02, 300.0)}, None),
    ("clm-top-k-shrinks-spans", None, {"adaptive-span-top-8": (78, 101, 141, 319)}),
    ("clm-top-k-shrinks-spans", None, {"adaptive-span-top-32": (151, 170, 227, 319)}),
    ("clm-top-8-halves-spans", None, {"adaptive-span-top-8": (98, 141, 201, 270)}),
]


@pytest.mark.parametrize("last_seed_only", [False, True])
@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize(("claim", "changes", "spans"), FAILING)
def test_a_claim_fails_if_only_on_one_corpus_and_for_one_seed(tmp_path, claim, changes, spans, corpus, last_seed_only):
    write_world(tmp_path, tables(changes, spans, corpus=corpus, last_seed_only=last_seed_only))
    assert TESTS[claim](tmp_path / "char_lm").holds is False


def test_every_claim_that_is_no_number_can_fail():
    assert {claim for claim, *_ in FAILING} == set(CLAIMS.index) - set(NUMERIC.index)


def test_the_deciding_number_is_that_of_the_corpus_that_decides(verdicts):
    """The smaller gain in bits, the larger share of the span."""
    smaller = {"adaptive-span-top-8": tuple(0.4 * span for span in SPANS["adaptive-span"])}
    table = verdicts({"transformer-xl-top-k": (1.06, 64.0)}, smaller)
    assert table.loc["clm-xl-top-k-no-worse", "mean"] == pytest.approx(0.01)
    assert table.loc["clm-top-8-halves-spans", "mean"] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("at_paper_scale", [False, True])
def test_fewer_positions_are_untested_where_spans_have_no_room(verdicts, at_paper_scale):
    row = verdicts(longest=128, at_paper_scale=at_paper_scale).loc["clm-span-top-8-fewer-positions"]
    assert row["verdict"] == "untested at this scale"
    assert "at most 128" in row["numbers"]


@pytest.mark.parametrize("model", CHARACTER_MODELS)
def test_without_a_model_its_claims_are_untested_and_the_others_hold(tmp_path, model):
    write_world(tmp_path, tables(leave_out=model))
    found = {claim: TESTS[claim](tmp_path / "char_lm") for claim in set(CLAIMS.index) - set(NUMERIC.index)}
    about_others = {claim for claim, finding in found.items() if finding is not None}
    assert 0 < len(about_others) < len(found)
    assert all(found[claim].holds for claim in about_others)


@pytest.mark.parametrize(("away", "verdict"), [(0, "holds"), (0.9, "holds"), (-0.9, "holds"), (1.1, "fails")])
@pytest.mark.parametrize("claim", NUMERIC.index)
def test_published_bits_are_judged_by_their_tolerance_at_the_papers_scale(verdicts, claim, away, verdict):
    bits = NUMERIC.loc[claim, "value"] + away * NUMERIC.loc[claim, "tolerance"]
    changes = {"adaptive-span-top-8": (bits, 8.0)}
    table = verdicts(changes, corpus=claim.removeprefix("clm-bits-"), at_paper_scale=True)
    assert table.loc[claim, "verdict"] == verdict
