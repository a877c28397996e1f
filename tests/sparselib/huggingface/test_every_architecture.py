"""Every architecture of transformers that can be built tiny: exact through us, or refused with the reason; and as published."""

import csv

import pytest
import transformers
from architectures import EXACT, NOT_BUILT, REFUSED, TABLE, judged, names

PUBLISHED = {row["architecture"]: row for row in csv.DictReader(TABLE.open(encoding="utf-8", newline=""))}


@pytest.mark.parametrize("name", names())
def test_it_is_exact_or_refused_as_the_published_table_says(name):
    verdict, detail = judged(name)
    assert verdict in (EXACT, REFUSED, NOT_BUILT), detail
    assert verdict == PUBLISHED[name]["verdict"], detail


def test_the_table_has_a_reason_for_every_refusal_and_is_of_the_version_that_is_installed():
    assert {row["transformers"] for row in PUBLISHED.values()} == {transformers.__version__}
    assert all(row["detail"] for row in PUBLISHED.values())
    assert sum(row["verdict"] == EXACT for row in PUBLISHED.values()) > sum(
        row["verdict"] == NOT_BUILT for row in PUBLISHED.values()
    )
