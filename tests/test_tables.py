"""Tables of the READMEs are what the files say."""

import importlib.util

import pytest

from replication.paths import ROOT
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
