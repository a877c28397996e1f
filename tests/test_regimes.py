"""Regimes of models follow from configurations, and every stored run is described."""

import pytest

from replication.claims import TESTS
from replication.files.paths import ROOT
from replication.tables.regimes import (
    FINE_TUNED,
    HEADER,
    INDEPENDENT,
    REGIMES,
    TIED,
    configuration,
    regime,
    regimes,
)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"pretrained": "package:encoder/model"}, FINE_TUNED),
        ({"pretrained": "package:encoder/model", "tied_query_key": True}, FINE_TUNED),
        ({"hidden_size": 64}, INDEPENDENT),
        ({"hidden_size": 64, "tied_query_key": True}, TIED),
    ],
)
def test_the_regime_of_a_masked_language_model_is_that_of_its_initial_weights(model, expected):
    assert regime("mlm-recall-distance-first", {"masked_lm": {"model": model}}) == expected
    assert regime("blocks-v1-is-more-robust", {"masked_lm": {"model": model}}) == expected


def test_other_claims_have_the_regime_of_their_task():
    found = {regime(claim, {}) for claim in TESTS}
    assert found <= set(REGIMES)
    assert regime("mt-bleu-on-par-at-gold-sparsity", {}) == regime("est-top-8-beats-full", {}) == "translation"
    assert regime("xst-documents-oow-leads", {}) == "documents"


def test_stored_runs_are_described_by_what_their_files_say():
    rows = {}
    for line in regimes().splitlines()[2:]:
        cells = line.strip("| ").split(" | ")
        rows.setdefault(cells[0].partition("]")[0][1:], []).append(dict(zip(HEADER, cells, strict=False)))
    with_models = {path.parents[2].name for path in ROOT.glob("reported/*/masked_lm/model/training.json")}
    assert with_models <= set(rows)
    for run in sorted(with_models):
        settings, (row, *_) = configuration(run)["masked_lm"], rows[run]
        assert row["tokens"] == str(settings["length"])
        assert "?" not in row["layers x heads"]
        per_epoch = -(-settings["graphs"]["train"] // settings["projection"]["batch_size"])
        assert row["student steps"] == str(settings["projection"]["epochs"] * per_epoch)
