"""The band of sparsities in which a claim compares curves."""

import numpy as np
import pytest

from replication.claims.band import Band


@pytest.mark.parametrize(
    ("text", "band"),
    [
        ("gold - 0.10", Band(0.1)),
        ("gold - 0.05 to gold + 0.05", Band(0.05, 0.05)),
        ("gold - 0.2 to gold + 0", Band(0.2, 0.0)),
    ],
)
def test_a_band_is_read_as_it_is_written(text, band):
    assert Band.parse(text) == band


@pytest.mark.parametrize(
    "text", ["", "gold", "gold + 0.1", "gold - x", "gold - 0.1 to gold - 0.05", "0.9 - 1", "gold-0.1"]
)
def test_what_is_no_band_is_an_error_that_shows_it(text):
    with pytest.raises(ValueError, match=r"`band` must be like 'gold - 0.10'"):
        Band.parse(text)


def test_a_band_contains_its_ends_and_is_open_upwards_without_one():
    sparsities = np.array([0.69, 0.7, 0.8, 0.85, 0.86, 1.0])
    assert sparsities[Band(0.1).contains(sparsities, 0.8)].tolist() == [0.7, 0.8, 0.85, 0.86, 1.0]
    assert sparsities[Band(0.1, 0.05).contains(sparsities, 0.8)].tolist() == [0.7, 0.8, 0.85]
