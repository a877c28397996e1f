"""Tables and tensors with other columns, or with values that cannot be, are not written, and not listed by hand."""

import shutil
from math import inf, nan

import numpy as np
import pandas as pd
import pytest
import torch
from command_line import assert_one_line, run, succeed

from replication.files.manifest import read_manifest
from replication.files.paths import ROOT
from replication.files.schema import check_table, read_declared, table_at, tables
from replication.files.storage import read_tensors, write_table, write_tensors
from replication.results.settings import ARGUMENTS

STORED = sorted(path.parent for path in (ROOT / "reported").glob("*/claims.csv"))
#: A column of each kind, range and rule for empty cells, which all that is checked of a column depends on.
COLUMNS = list(
    {
        (column.kind, column.lowest, column.highest, column.may_be_empty, name in table.may_be_missing): (table, name)
        for table in tables().values()
        for name, column in table.columns.items()
    }.values()
)
LABELS = [f"{table.name}: {name}" for table, name in COLUMNS]
#: Columns, and what their cells can have in place of a value: a text or a list has no infinity.
EMPTY = [
    pytest.param(table, name, empty, id=f"{table.name}: {name}, {empty}")
    for table, name in COLUMNS
    for empty in ((None,) if table.columns[name].kind in ("text", "list") else (None, nan, inf, -inf))
]
#: Columns, an end of their range, and the way out of it.
ENDS = [
    pytest.param(table, name, limit, beyond, id=f"{table.name}: {name}, {limit:g}")
    for table, name in COLUMNS
    for limit, beyond in ((table.columns[name].lowest, -1), (table.columns[name].highest, 1))
    if np.isfinite(limit)
]


def path_of(table, folder):
    """A path at which a run has the table."""
    return folder / table.files[0].replace("*", "0")


def value_of(column):
    """The smallest value of a column."""
    number = 0.0 if column.lowest == -inf else column.lowest
    return {"text": "a", "list": ["a"], "whole": int(number) if column.kind == "whole" else 0, "number": float(number)}[
        column.kind
    ]


def frame_of(table, rows=3):
    return pd.DataFrame({name: [value_of(column) for _ in range(rows)] for name, column in table.columns.items()})


@pytest.mark.parametrize("table", tables().values(), ids=tables())
def test_a_table_with_its_columns_is_written_and_comes_back(table, tmp_path):
    path = path_of(table, tmp_path)
    assert table_at(path) is table
    write_table(path, frame_of(table))
    check_table(path, read_declared(path))


@pytest.mark.parametrize(("table", "name"), COLUMNS, ids=LABELS)
def test_each_column_is_required_and_of_its_kind(table, name, tmp_path):
    path, column = path_of(table, tmp_path), table.columns[name]
    if name in table.may_be_missing:
        check_table(path, frame_of(table).drop(columns=name))
    else:
        with pytest.raises(ValueError, match=rf"{path.name}: must have a column {name}, got"):
            check_table(path, frame_of(table).drop(columns=name))
    other = {"text": 1.5, "list": "a"}.get(column.kind, "a")
    with pytest.raises(ValueError, match=rf"{path.name}: column {name} must have .*, got"):
        check_table(path, frame_of(table).assign(**{name: [other] * 3}))
    if column.kind == "whole":
        with pytest.raises(ValueError, match=rf"column {name} must have whole numbers, got float64"):
            check_table(path, frame_of(table).assign(**{name: [0.5] * 3}))


@pytest.mark.parametrize(("table", "name", "empty"), EMPTY)
def test_a_cell_is_empty_only_where_it_may_be(table, name, empty, tmp_path):
    path, frame = path_of(table, tmp_path), frame_of(table)
    values = list(frame[name])
    values[1] = empty
    frame[name] = values
    if table.columns[name].may_be_empty:
        check_table(path, frame)
    else:
        with pytest.raises(ValueError, match=rf"column {name} of row 1 must not be empty, NaN or infinite, got"):
            write_table(path, frame)
        assert not path.exists()


@pytest.mark.parametrize(("table", "name", "limit", "beyond"), ENDS)
def test_a_value_outside_of_its_range_is_refused_by_its_row(table, name, limit, beyond, tmp_path):
    path, frame = path_of(table, tmp_path), frame_of(table)
    frame[name] = [value_of(table.columns[name]), limit, limit + beyond]
    with pytest.raises(ValueError, match=rf"column {name} of row 2 must be (at least|from) .*, got"):
        write_table(path, frame)
    check_table(path, frame[:2])


def test_a_column_that_nobody_declared_is_refused_but_arguments_of_rules_are_known_by_their_table(tmp_path):
    for table in tables().values():
        frame = frame_of(table).assign(colour=1.0)
        if table.has_arguments:
            check_table(path_of(table, tmp_path), frame)
        else:
            with pytest.raises(ValueError, match="must have no column colour; its columns are"):
                check_table(path_of(table, tmp_path), frame)


def test_a_table_without_rows_is_refused_and_rounded_means_pass(tmp_path):
    path = tmp_path / "retrofit/sparsified/recall0.95/measured.parquet"
    frame = frame_of(table_at(path))
    with pytest.raises(ValueError, match=r"measured.parquet: must have rows, got none"):
        write_table(path, frame[:0])
    write_table(path, frame.assign(recall=1.0000002, cosine=-1.0000002))


def test_whole_numbers_with_empty_cells_pass_in_any_form(tmp_path):
    path = tmp_path / "forms/sentences/fr-en/a/measured.csv"
    frame = frame_of(table_at(path))
    for budget in ([8.0, nan, 2.0], [8, None, 2], [None] * 3, pd.array([8, None, 2], dtype="Int64")):
        write_table(path, frame.assign(budget=budget))
    with pytest.raises(ValueError, match=r"column budget of row 2 must be at least 1, got 0"):
        write_table(path, frame.assign(budget=[8, None, 0]))


def test_columns_of_arguments_are_not_taken_for_others():
    """An argument may have the name of a table's own column only if both mean the same: window, and the target of heads."""
    own = {name for table in tables().values() if table.has_arguments for name in table.columns}
    assert own & set(ARGUMENTS) == {"window"}


@pytest.mark.parametrize("run", STORED, ids=lambda run: run.name)
def test_stored_tables_are_what_their_places_say(run):
    for path in sorted(path for suffix in ("csv", "parquet") for path in run.rglob(f"*.{suffix}")):
        if table_at(path) is None:
            assert path.parent.name == "kmeans" or path.name in ("seeds.csv", "means.csv")
        else:
            check_table(path, read_declared(path))


@pytest.mark.parametrize("name", ["brown", "multi30k-forms"])
def test_a_stored_run_of_an_earlier_version_can_be_listed_again(tmp_path, name):
    shutil.copytree(ROOT / "reported" / name, tmp_path / "reported" / name)
    succeed(tmp_path, "keep", f"reported/{name}", config=None)


def test_a_stored_run_with_an_impossible_table_is_not_listed(tmp_path):
    """Else `keep` would make a changed file the run's own."""
    path = tmp_path / "reported/mine/masked_lm/perplexity.csv"
    frame = frame_of(table_at(path))
    write_table(path, frame)
    (tmp_path / "reported/mine/config.yaml").write_text("profile: mine\n")
    succeed(tmp_path, "keep", "reported/mine", config=None)
    frame.assign(nats=-1.0).to_csv(path, index=False)
    before = read_manifest(tmp_path / "reported/mine")
    done = run(tmp_path, "keep", "reported/mine", config=None)
    assert_one_line(done, "perplexity.csv: column nats of row 0 must be at least 0, got -1")
    assert read_manifest(tmp_path / "reported/mine") == before


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
