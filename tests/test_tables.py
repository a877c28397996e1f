"""Tables of the READMEs are what the files say."""

import csv
import importlib.util
import statistics

import numpy as np
import pandas as pd
import pytest

from replication.paths import ROOT
from replication.reading import read_table
from replication.tables import characters, claims, forms, kmeans, speed
from replication.tables.attention import targets
from replication.tables.markers import END, markdown, with_tables

spec = importlib.util.spec_from_file_location("tables", ROOT / "workflow" / "scripts" / "tables.py")
tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tables)


def test_no_table_would_change():
    assert [path.name for path in tables.changed()] == []


def test_a_table_is_written_between_its_comments():
    text = f"before\n<!-- table one -->\nold\n{END}\nafter\n<!-- table two -->\n{END}\n"
    expected = f"before\n<!-- table one -->\n1\n{END}\nafter\n<!-- table two -->\n2\n{END}\n"
    assert with_tables(text, {"one": lambda: "1", "two": lambda: "2"}) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"<!-- table three -->\n{END}", "no table 'three', only one"),
        ("<!-- table one -->\nx", "1 tables begin, and 0"),
    ],
)
def test_what_is_no_table_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        with_tables(text, {"one": lambda: "1"})


def test_markdown_has_a_line_for_each_row():
    assert markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_a_target_that_is_met_is_bold():
    lines = [line for line in targets().splitlines() if "FlexAttention" in line]
    assert lines
    assert all("**" in line for line in lines)


def test_every_reported_run_with_a_text_has_its_tables_written():
    texts = {f"reported/{path.parent.name}/README.md" for path in (ROOT / "reported").glob("*/README.md")}
    assert texts <= set(tables.TEXTS)


def test_every_table_stands_in_some_text():
    text = "".join((ROOT / name).read_text() for name in tables.TEXTS)
    assert [name for name in tables.TABLES if f"<!-- table {name} -->" not in text] == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"verdict": "holds", "interval": "1.25 to 2.5"}, "**holds**, 1.23 (1.25 to 2.5)"),
        ({"verdict": "fails", "interval": ""}, "**fails**, 1.23"),
        ({"verdict": "undecided", "interval": "-0.5 to 2.5"}, "**undecided**, 1.23 (-0.5 to 2.5)"),
        ({"verdict": "not comparable", "interval": ""}, "not comparable, 1.23: n >= 512 (128); m <= 0.5 (0.7 in a)"),
        ({"verdict": "untested", "numbers": "no tag"}, "untested: no tag"),
        ({"verdict": "untested", "numbers": ""}, "untested"),
    ],
)
def test_a_verdict_comes_with_what_it_stands_on(line, expected):
    premise = "n >= 512 (128); bleu >= 25 (40.2 in b); m <= 0.5 (0.7 in a); k <= 2 (2)"
    assert claims.verdict(pd.Series({"effect": "1.2345", "premise": premise, **line})) == expected


def world(root, demo: str):
    """Reported runs of two claims: one decided by `real` alone, one by the demo alone."""
    (root / "config/published").mkdir(parents=True)
    published = "id,effect,unit,relation,threshold\nmt-a,gain,BLEU,>=,0.0\nmt-b,loss,BLEU,<=,1.0\n"
    (root / "config/published/claims.csv").write_text(published)
    header = "id,statement,criterion,premise,verdict,effect,interval,n,numbers\n"
    for run, text in {
        "real": header + "mt-a,A,c,,holds,1.0,,3,\nmt-b,B,c,n >= 9 (2),not comparable,1.0,,3,x\n",
        "demo": demo or header + "mt-a,A,c,,untested,,,,\nmt-b,B,c,,fails,2.0,,3,\n",
    }.items():
        (root / "reported" / run).mkdir(parents=True)
        (root / "reported" / run / "claims.csv").write_text(text)


def test_claims_that_the_demo_decides_stand_beside_those_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    world(tmp_path, demo="")
    lines = claims.decided(("real",), ("mt-",)).splitlines()[2:]
    assert lines[0] == "| A | **holds**, 1 | untested | at least 0 BLEU |"
    assert lines[1] == "| B | not comparable, 1: n >= 9 (2) | **fails**, 2 | at most 1 BLEU |"


def test_verdicts_of_real_text_and_of_the_demo_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    world(tmp_path, demo="")
    said = claims.verdicts()
    assert said.startswith(
        "**2 claims, of which 2 have a verdict in some run.** On real text, counted in each of 1 runs, 1 hold, 0 fail, 0"
    )
    assert "runs, 0 hold, 1 fail, 0 are undecided." in said


def test_a_main_claim_is_shown_where_it_is_decided(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    monkeypatch.setattr(claims, "MAIN", ("mt-b", "mt-a"))
    world(tmp_path, demo="")
    (tmp_path / "reported/another").mkdir()
    header = "id,statement,criterion,premise,verdict,effect,interval,n,numbers\n"
    (tmp_path / "reported/another/claims.csv").write_text(header + "mt-a,A,c,,untested,,,,\nmt-b,B,c,,untested,,,,\n")
    assert claims.main().splitlines()[2:] == [
        "| B | not comparable, 1: n >= 9 (2) ([real](reported/real)) | **fails**, 2 | at most 1 BLEU |",
        "| A | **holds**, 1 ([real](reported/real)) | untested | at least 0 BLEU |",
    ]
    (tmp_path / "reported/another/claims.csv").write_text(header + "mt-a,A,c,,fails,-3.0,,3,\nmt-b,B,c,,untested,,,,\n")
    (line,) = (line for line in claims.main().splitlines() if line.startswith("| A"))
    assert line.split(" | ")[1] == "**fails**, -3 ([another](reported/another)); **holds**, 1 ([real](reported/real))"


def test_a_ledger_by_other_rules_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    world(tmp_path, demo="id,statement,verdict\nmt-a,A,holds\nmt-b,B,holds\n")
    assert claims.decided(("real",), ("mt-",)).splitlines()[2:] == ["| A | **holds**, 1 | at least 0 BLEU |"]
    assert claims.counts().splitlines()[2:] == ["| [real](real) | 1 | 0 | 0 | 1 | 0 |"]


def test_a_cell_of_table_1_is_the_mean_of_its_seeds_beside_the_published_one():
    with (forms.FOLDER / "every_seed/measured.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["form"] == row["tested_with"] == "Top-k"]
    eight = [float(row["bleu"]) for row in rows if float(row["budget"]) == 8]
    expected = f"{statistics.mean(eight):.1f} ± {statistics.stdev(eight):.1f} (37.6)"
    (line,) = (line for line in forms.table1().splitlines() if line.startswith("| Top-k |"))
    assert len(eight) == 3
    assert line.split(" | ")[2] == expected


@pytest.mark.parametrize("path", sorted(kmeans.FOLDER.glob("*.csv")), ids=lambda path: path.stem)
def test_any_number_of_centroids_is_never_behind_one_and_both_are_of_kmeans(path):
    fronts = kmeans.compared(read_table(path)).fronts
    one, any_number = fronts[kmeans.ONE], fronts[kmeans.ANY]
    both = np.isfinite(one) & np.isfinite(any_number)
    assert both.any()
    # Fronts are interpolated: between two points a denser front may lie a little lower.
    assert (any_number - one)[both].min() > -1
    assert (any_number - one)[both].max() > 1


def test_what_a_benchmark_no_longer_says_is_named():
    with pytest.raises(ValueError, match=r"some\.txt: no line like"):
        speed.found("^ours", "theirs 3 ms", "some.txt")


def test_bits_of_a_character_model_are_the_mean_of_its_seeds_with_their_spread():
    bits = []
    for path in (characters.FOLDER / "war-and-peace/models/block").glob("seed*/measured.csv"):
        with path.open() as file:
            bits += [float(row["bits_per_character"]) for row in csv.DictReader(file)]
    assert len(bits) == 3
    (line,) = (line for line in characters.table3().splitlines() if line.startswith("| Transformer block |"))
    assert f"| {statistics.mean(bits):.3f} ± {statistics.stdev(bits):.3f} |" in line
