"""The claims about block-based Sparsefinder: their verdicts follow from the tables."""

import pandas as pd
import pytest
from worlds import judged

from replication.claims.blocks import TESTS

SEEDS = [0, 1, 2]
# (nats, milliseconds) of a world in which all claims hold, by method and K.
WORLD = {
    ("sparsefinder-v1", 2): (2.0, 1.0),
    ("sparsefinder-v2", 2): (2.1, 1.2),
    ("sparsefinder-v1", 22): (1.5, 3.0),
    ("sparsefinder-v2", 22): (1.5, 3.0),
    ("bigbird", 2): (2.5, 0.9),
    ("bigbird", 22): (2.4, 2.0),
    ("bigbird-softmax", 2): (2.7, 0.9),
    ("bigbird-softmax", 22): (2.6, 1.8),
}
FULL = {"full": 5.0, "full-kernel": 4.0}


def tables(changes=(), *, last_seed_only=False, full=None, sizes=(2, 4), leave_out=None):
    """The tables of a workflow, by path."""
    found = {}
    for size in sizes:
        at = f"masked_lm/blocks/size{size}"
        for seed in SEEDS:
            world = WORLD | (dict(changes) if seed == SEEDS[-1] or not last_seed_only else {})
            rows = [
                {"seed": seed, "block_size": size, "method": method, "count": k, "clusters": 0, "nats": nats}
                for (method, k), (nats, _) in world.items() if (size, k) != leave_out
            ]  # fmt: skip
            found[f"{at}/evaluated/seed{seed}.csv"] = pd.DataFrame(rows)
        times = [(method, k, ms) for (method, k), (_, ms) in (WORLD | dict(changes)).items() if (size, k) != leave_out]
        times += [(method, 64 // size, ms) for method, ms in (FULL | (full or {})).items()]
        table = pd.DataFrame(times, columns=["method", "count", "model_seconds"])
        table["model_seconds"] /= 1000
        found[f"{at}/timed.csv"] = table.assign(block_size=size, length=64, device="abacus")
    return found


@pytest.fixture
def verdicts(tmp_path):
    # The other claims of the task are not about this folder.
    return lambda *changes, **world: judged(tmp_path, tables(*changes, **world), TESTS)


@pytest.fixture(autouse=True)
def only_blocks(monkeypatch):
    from replication import claims

    others = {name: (lambda folder: None) for name in claims.TESTS if name not in TESTS}
    monkeypatch.setattr(claims, "TASKS", {"masked_lm": others | TESTS})


def test_where_all_claims_hold_the_ledger_says_so(verdicts):
    table = verdicts()
    assert (table["verdict"] == "holds").all()
    assert table["seeds"].tolist() == [3, 3, 1, 3, 2]


@pytest.mark.parametrize("last_seed_only", [False, True])
@pytest.mark.parametrize(
    ("claim", "point", "nats"),
    [
        ("blocks-two-beat-22-of-bigbird", ("sparsefinder-v1", 2), 2.61),
        ("blocks-two-beat-22-of-bigbird", ("sparsefinder-v2", 2), 2.61),
        ("blocks-two-beat-22-of-bigbird-with-entmax", ("bigbird", 22), 2.05),
        ("blocks-more-help-sparsefinder-not-bigbird", ("sparsefinder-v2", 22), 2.05),
        ("blocks-more-help-sparsefinder-not-bigbird", ("bigbird-softmax", 22), 2.05),
    ],
)
def test_a_claim_fails_where_the_tables_turn_if_only_for_one_seed(verdicts, claim, point, nats, last_seed_only):
    table = verdicts({point: (nats, WORLD[point][1])}.items(), last_seed_only=last_seed_only)
    assert table.loc[claim, "verdict"] == "fails"


@pytest.mark.parametrize("version", ["sparsefinder-v1", "sparsefinder-v2"])
def test_a_slower_version_fails(verdicts, version):
    table = verdicts({(version, 2): (2.0, 1.9), (version, 22): (1.5, 4.5)}.items())
    for claim in ("blocks-two-are-faster-than-22-of-bigbird", "blocks-faster-than-full-entmax"):
        assert table.loc[claim, "verdict"] == "fails"


@pytest.mark.parametrize("method", FULL)
def test_the_faster_full_model_counts(verdicts, method):
    row = verdicts(full={method: 2.9}).loc["blocks-faster-than-full-entmax"]
    assert row["verdict"] == "fails"
    assert row["mean"] == pytest.approx(2.9 / 3)
    assert "64 tokens, abacus" in row["numbers"]


def test_numbers_are_margins_and_ratios(verdicts):
    table = verdicts()
    assert table.loc["blocks-two-beat-22-of-bigbird", "mean"] == pytest.approx(0.5)
    assert table.loc["blocks-two-beat-22-of-bigbird-with-entmax", "mean"] == pytest.approx(0.3)
    assert table.loc["blocks-two-are-faster-than-22-of-bigbird", "mean"] == pytest.approx(1.8 / 1.2)
    assert table.loc["blocks-more-help-sparsefinder-not-bigbird", "mean"] == pytest.approx(0.5 - 0.1)


def test_a_size_without_room_for_22_blocks_is_left_out(verdicts):
    table = verdicts(leave_out=(4, 22), changes={("sparsefinder-v1", 2): (2.0, 1.0)}.items())
    assert (table["verdict"] == "holds").all()


def test_where_22_blocks_fit_nowhere_claims_about_them_are_untested(tmp_path):
    table = judged(tmp_path, tables(sizes=(4,), leave_out=(4, 22)), TESTS)
    about = table.drop(index="blocks-faster-than-full-entmax")
    assert (about["verdict"] == "untested at this scale").all()
    assert about["numbers"].str.contains("K = 22").all()
    assert table.loc["blocks-faster-than-full-entmax", "verdict"] == "holds"


def test_without_tables_of_blocks_every_claim_is_untested(tmp_path):
    (tmp_path / "masked_lm").mkdir()
    table = judged(tmp_path, {}, TESTS)
    assert (table["verdict"] == "untested at this scale").all()
