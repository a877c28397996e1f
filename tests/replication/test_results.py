"""From rows to curves: means over heads and seeds, fronts and the areas under them, on tables small enough to do by hand."""

import math
import subprocess
import sys
from itertools import product

import pandas as pd
import pytest

from replication.results import measurements as results
from replication.results.measurements import read_block_times, read_blocks, read_characters, read_replaced, read_sweep
from replication.results.points import at_every_count, over_heads, over_seeds, span_at, spans_at_bits, spread
from replication.results.settings import as_columns
from sparselib.forms import FORMS

MEASURES = ["recall", "sparsity", "precision", "exact", "keyless", "gold_sparsity"]


def made_sweep():
    """Two seeds, methods, settings, windows, layers and heads; every measure another number in every row."""
    points = product([0, 1], [0, 1], ["near", "window"], ["", "top_k=1"], [0, 3], [0, 1])
    table = pd.DataFrame(points, columns=["seed", "layer", "method", "setting", "window", "head"])
    for number, measure in enumerate(MEASURES):
        table[measure] = [(row * (number + 3)) ** 2 % 97 / 97 for row in range(len(table))]
    return table.sample(frac=1, random_state=0)


def test_over_heads_is_the_plain_mean_over_layers_and_heads():
    sweep = made_sweep()
    points = over_heads(sweep)
    assert len(points) == 2 * 2 * 2 * 2
    for point in points.to_dict("records"):
        rows = [
            row
            for row in sweep.to_dict("records")
            if all(row[name] == point[name] for name in ("seed", "method", "setting", "window"))
        ]
        assert len(rows) == 4
        for measure in MEASURES:
            assert point[measure] == pytest.approx(sum(row[measure] for row in rows) / 4)


def test_over_seeds_is_the_mean_over_seeds():
    points = over_heads(made_sweep())
    means = over_seeds(points)
    assert "seed" not in means
    assert len(means) == 2 * 2 * 2
    for mean in means.to_dict("records"):
        both = points.query("method == @mean['method'] and setting == @mean['setting'] and window == @mean['window']")
        assert len(both) == 2
        for measure in MEASURES:
            assert mean[measure] == pytest.approx(sum(both[measure]) / 2)


def test_read_sweep_reads_every_seed(tmp_path):
    sweep = made_sweep()
    (tmp_path / "sweep").mkdir()
    for seed, rows in sweep.groupby("seed"):
        as_columns(rows).to_parquet(tmp_path / "sweep" / f"seed{seed}.parquet", index=False)
    order = ["seed", "layer", "method", "setting", "window", "head"]
    found, expected = (table.sort_values(order).reset_index(drop=True) for table in (read_sweep(tmp_path), sweep))
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_read_replaced_puts_one_seed_below_the_other(tmp_path):
    (tmp_path / "replaced").mkdir()
    for number in (2, 0, 1):
        pd.DataFrame({"method": "near", "seed": number, "window": [0, 1]}).to_csv(
            tmp_path / "replaced" / f"seed{number}.csv", index=False
        )
    table = read_replaced(tmp_path)
    assert table["seed"].tolist() == [0, 0, 1, 1, 2, 2]
    assert table.index.tolist() == [*range(6)]


def write_seed(folder, table):
    folder.mkdir(exist_ok=True)
    table.to_parquet(folder / "seed0.parquet", index=False)


def test_a_column_that_no_method_has_is_refused(tmp_path):
    """Another checkout's argument must not disappear, because its points would merge into averages that nobody measured."""
    stored = as_columns(made_sweep().query("seed == 0"))
    write_seed(tmp_path / "sweep", stored.assign(landmarks=stored["layer"]))
    with pytest.raises(ValueError, match=r"seed0.parquet: column landmarks must be a measurement or an argument"):
        read_sweep(tmp_path)


def test_two_rows_of_one_point_are_refused(tmp_path):
    stored = as_columns(made_sweep().query("seed == 0"))
    write_seed(tmp_path / "sweep", pd.concat([stored, stored.iloc[:1].assign(recall=0.5)]))
    with pytest.raises(ValueError, match=r"seed0.parquet: must have one row per point, got two of .*method="):
        read_sweep(tmp_path)


@pytest.mark.parametrize(("read", "named"), [(read_sweep, "sweep"), (read_replaced, "replaced")])
def test_results_that_are_not_there_are_named(tmp_path, read, named):
    with pytest.raises(FileNotFoundError, match=f"{named}: no table"):
        read(tmp_path)


def test_spread_is_mean_and_sample_standard_deviation():
    assert spread(pd.Series([1.0, 2.0, 3.0])) == "2.0000 ± 1.0000"
    assert spread(pd.Series([0.5])) == "0.5000 ± nan"


def test_tables_of_all_block_sizes_are_one(tmp_path):
    for size, seed in product([2, 16], [0, 1]):
        path = tmp_path / "blocks" / f"size{size}" / "evaluated" / f"seed{seed}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"seed": [seed], "block_size": [size]}).to_csv(path, index=False)
        pd.DataFrame({"block_size": [size]}).to_csv(path.parents[1] / "timed.csv", index=False)
    assert sorted(read_blocks(tmp_path)[["seed", "block_size"]].itertuples(index=False, name=None)) == [
        (0, 2),
        (0, 16),
        (1, 2),
        (1, 16),
    ]
    assert sorted(read_block_times(tmp_path).block_size) == [2, 16]


@pytest.mark.parametrize("read", [read_blocks, read_block_times])
def test_missing_tables_of_blocks_are_named(tmp_path, read):
    with pytest.raises(FileNotFoundError, match="blocks"):
        read(tmp_path)


def test_means_over_block_sizes_are_over_those_with_every_k():
    rows = [("bigbird", 2, 2), ("bigbird", 2, 22), ("bigbird", 8, 2), ("full", 2, 64), ("full", 8, 16)]
    table = pd.DataFrame(rows, columns=["method", "block_size", "count"])
    assert at_every_count(table)[["method", "block_size", "count"]].values.tolist() == [
        ["bigbird", 2, 2],
        ["bigbird", 2, 22],
    ]


def write_log(folder, corpus, model, seed, bits, spans=None):
    at = folder / corpus / "models" / model / f"seed{seed}"
    at.mkdir(parents=True)
    log = pd.DataFrame({"valid_bits": bits})
    (log if spans is None else log.assign(mean_span=spans)).to_csv(at / "log.csv", index=False)


def test_character_tables_are_put_together_in_the_order_of_the_models(tmp_path):
    for model, seed in (("adaptive-span", 10), ("transformer-xl", 1), ("transformer-xl", 0)):
        write_log(tmp_path, "b", model, seed, [2.0, 1.0])
    write_log(tmp_path, "a", "adaptive-span", 0, [3.0])
    table = read_characters(tmp_path, "log.csv")
    assert list(table) == ["corpus", "model", "seed", "valid_bits"]
    assert list(table.itertuples(index=False, name=None)) == [
        ("b", "transformer-xl", 0, 2.0),
        ("b", "transformer-xl", 0, 1.0),
        ("b", "transformer-xl", 1, 2.0),
        ("b", "transformer-xl", 1, 1.0),
        ("a", "adaptive-span", 0, 3.0),
        ("b", "adaptive-span", 10, 2.0),
        ("b", "adaptive-span", 10, 1.0),
    ]
    with pytest.raises(FileNotFoundError, match=r"measured\.csv"):
        read_characters(tmp_path, "measured.csv")


@pytest.mark.parametrize(("worst", "last"), [(1.1, 1.1), (1.0999, 1.1), (1.1001, 1.2), (1.02, 1.1)])
def test_spans_are_compared_down_to_the_last_tenth_that_every_run_reached(tmp_path, worst, last):
    write_log(tmp_path, "a", "transformer-xl", 0, [9.0])
    write_log(tmp_path, "a", "adaptive-span", 0, [2.0, worst], [10.0, 100.0])
    write_log(tmp_path, "a", "adaptive-span-top-8", 0, [2.0, 1.0], [10.0, 20.0])
    table = spans_at_bits(read_characters(tmp_path, "log.csv"))
    assert table.columns.tolist() == pytest.approx([last + 0.3, last + 0.2, last + 0.1, last])
    assert table.index.tolist() == [("adaptive-span", 0), ("adaptive-span-top-8", 0)]
    assert table.loc[("adaptive-span-top-8", 0), table.columns[-1]] == pytest.approx(10 + 10 * (2 - last))
    assert table.notna().all(axis=None)


@pytest.mark.parametrize(("bits", "span"), [(2.5, 10), (2.0, 10), (1.75, 15), (1.5, 20), (1.2, 36), (1.0, math.nan)])
def test_spans_are_read_between_the_lines_of_the_log(bits, span):
    """At the first crossing, even if bits rise again later."""
    log = pd.DataFrame({"valid_bits": [2.0, 1.5, 1.6, 1.1], "mean_span": [10.0, 20.0, 20.0, 40.0]})
    assert span_at(log, bits) == pytest.approx(span, nan_ok=True)


def test_forms_are_named_as_the_predictors_are():
    assert [form for form in results.FORMS if form in FORMS] == list(FORMS)
    # What XST's text compares without a row of its own stands beside the form that it changes.
    assert set(results.FORMS) - FORMS.keys() == {"Top-k self", "Top-k OOW cross"}


def test_reading_tables_and_the_command_line_do_not_wait_for_torch_or_scipy():
    names = ("stages", "claims", "files.paths", "files.storage", "plots", "results")
    modules = ", ".join(f"replication.{name}" for name in names)
    script = f"import sys, {modules}; assert not sys.modules.keys() & {{'torch', 'scipy', 'seaborn'}}"
    subprocess.run([sys.executable, "-c", script], check=True)
