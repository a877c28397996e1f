"""Every architecture of transformers that can be built tiny: exact through us, or refused with the reason; and as published."""

import csv

import architectures
import pytest
import transformers
from architectures import EXACT, JUDGED_BY, NOT_BUILT, REFUSED, TABLE, code_hash, judged, names

from workflow.closure import files

PUBLISHED = {row["architecture"]: row for row in csv.DictReader(TABLE.open(encoding="utf-8", newline=""))}
#: All of them if this code is not the one that wrote the table, or else a sample.
TESTED = names() if JUDGED_BY.read_text().strip() != code_hash() else names()[::12]


@pytest.mark.parametrize("name", TESTED)
def test_it_is_exact_or_refused_as_the_published_table_says(name):
    verdict, detail = judged(name)
    assert verdict in (EXACT, REFUSED, NOT_BUILT), detail
    assert verdict == PUBLISHED[name]["verdict"], detail


def test_another_line_of_code_has_all_of_them_tested_again(monkeypatch):
    before = code_hash()
    monkeypatch.setattr(architectures, "files", lambda names: [*files(names), "README.md"])
    assert code_hash() != before
    assert {"sparselib/huggingface/probe.py", "sparselib/dense_attention.py"} <= set(
        files(["sparselib.huggingface.attention"])
    )


def test_the_table_has_a_reason_for_every_refusal_and_is_of_the_version_that_is_installed():
    assert {row["transformers"] for row in PUBLISHED.values()} == {transformers.__version__}
    assert all(row["detail"] for row in PUBLISHED.values())
    assert sum(row["verdict"] == EXACT for row in PUBLISHED.values()) > sum(
        row["verdict"] == NOT_BUILT for row in PUBLISHED.values()
    )
