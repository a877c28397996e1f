"""Tables and tensors with numbers that cannot be are not written."""

from math import inf, nan

import pandas as pd
import pytest
import torch

from replication.files.paths import ROOT
from replication.files.ranges import check_ranges
from replication.files.reading import read_table
from replication.files.storage import read_tensors, write_table, write_tensors

#: By column: a number that the quantity cannot have, and how the error states its range.
IMPOSSIBLE = {
    "bleu": (1e9, "from 0 to 100"),
    "recall": (1.01, "from 0 to 1"),
    "gold_sparsity": (-0.1, "from 0 to 1"),
    "perplexity": (0.99, "at least 1"),
    "training_seconds": (-1.0, "at least 0"),
    "sentences": (-2, "at least 0"),
    "cosine": (-1.1, "from -1 to 1"),
}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("column", IMPOSSIBLE)
def test_an_impossible_number_is_not_written(tmp_path, column, suffix):
    number, expected = IMPOSSIBLE[column]
    path = tmp_path / f"table.{suffix}"
    table = pd.DataFrame({"method": ["window", "distance"], column: [1, number]})
    with pytest.raises(ValueError, match=rf"table.{suffix}: column {column} of row 1 must be {expected}, got"):
        write_table(path, table)
    assert not path.exists()


def test_numbers_at_the_ends_of_a_range_and_rounded_means_pass(tmp_path):
    table = pd.DataFrame({"recall": [0, 1.0000002], "bleu": [0, 100], "perplexity": [1, 1e9], "cosine": [-1, 1]})
    write_table(tmp_path / "table.csv", table)
    assert len(read_table(tmp_path / "table.csv")) == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_a_tensor_that_is_not_finite_is_not_written(tmp_path, dtype, value):
    path = tmp_path / "model.safetensors"
    tensors = {"counts": torch.arange(3), "weight": torch.tensor([0.5, value], dtype=dtype)}
    with pytest.raises(ValueError, match=r"model.safetensors: tensor weight must not have NaN or infinite values"):
        write_tensors(path, tensors, kind="things")
    assert not path.exists()
    tensors["weight"] = torch.zeros(2, dtype=dtype)
    write_tensors(path, tensors, kind="things")
    assert set(read_tensors(path, kind="things")) == {"counts", "weight"}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "reported").rglob("*.csv")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_stored_tables_are_within_their_ranges(path):
    check_ranges(path, read_table(path))
