"""What character models are compared by, on logs small enough to work out by hand."""

import pandas as pd
import pytest

from replication.claims.char_lm import TESTS, bits_at_span
from replication.files.storage import write_table

NARROWING = pd.DataFrame({"valid_bits": [4.0, 2.0, 1.5], "mean_span": [150.0, 120.0, 100.0]})


@pytest.mark.parametrize(("span", "bits"), [(100, 1.5), (130, 1.5), (150, 1.5)])
def test_spans_that_begin_wide_are_not_read_before_anything_is_learned(span, bits):
    """At a span of 150 the first line has 4 bits, but the model has come down to 1.5 with less."""
    assert bits_at_span(NARROWING, span) == bits


def test_between_two_lines_of_growing_spans_bits_are_interpolated():
    growing = pd.DataFrame({"valid_bits": [4.0, 2.0, 2.5], "mean_span": [10.0, 20.0, 40.0]})
    assert [bits_at_span(growing, span) for span in (10, 15, 20, 30)] == [4.0, 3.0, 2.0, 2.0]


def test_models_that_never_had_one_span_are_not_compared_at_it(tmp_path):
    for model, spans in (("adaptive-span", [90.0, 100.0]), ("adaptive-span-top-32", [1.0, 2.0])):
        log(tmp_path, model, spans)
    log(tmp_path, "adaptive-span-top-8", [110.0, 120.0])
    assert TESTS["clm-top-8-better-at-equal-span"](tmp_path).effects == []
    log(tmp_path, "adaptive-span-top-8", [100.0, 120.0])
    (effect,) = TESTS["clm-top-8-better-at-equal-span"](tmp_path).effects
    assert effect.what == "text: bits saved at a span of 100"
    assert effect.value == pytest.approx(1 - 2 / 1)


def log(folder, model, spans):
    table = pd.DataFrame({"step": [1, 2], "valid_bits": [2.0, 1.0], "mean_span": spans})
    write_table(folder / "text" / "models" / model / "seed0" / "log.csv", table)
