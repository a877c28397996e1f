"""A profile with some of the character models: its tables and figures are those that these models fill."""

import pytest
import yaml

from replication.config import ConfigurationError, parse
from replication.files.paths import ROOT
from workflow.notebooks import notebooks

CHARACTERS = yaml.safe_load((ROOT / "config/smoke.yaml").read_text())["char_lm"]
SPANS = {"adaptive-span", "adaptive-span-top-32", "adaptive-span-top-8"}
XL = {"transformer-xl", "transformer-xl-top-k"}


def profile(names):
    models = {name: settings for name, settings in CHARACTERS["models"].items() if name in names}
    return {"profile": "some", "seed": 0, "student_seeds": [0], "char_lm": CHARACTERS | {"models": models}}


@pytest.mark.parametrize(
    ("names", "drawn"),
    [
        (SPANS, {"table4_spans", "table3_characters"}),
        (XL, {"table23_characters", "table3_characters"}),
        ({"block"}, {"table3_characters"}),
        (SPANS | XL, {"table4_spans", "table23_characters", "table3_characters"}),
        ({"adaptive-span", "transformer-xl"}, {"table3_characters"}),
    ],
)
def test_tables_that_lack_a_model_are_not_planned(names, drawn):
    run = parse(profile(names), files=False)
    planned = [notebook for notebook in notebooks(run, []) if any("char_lm" in path.parts for path in notebook.reads)]
    assert {notebook.name.rpartition("/")[2] for notebook in planned} == drawn
    for notebook in planned:
        read = {path.parts[-3] for path in notebook.reads if path.name in ("log.csv", "measured.csv")}
        assert read == names


def test_one_model_is_needed():
    with pytest.raises(ConfigurationError, match=r"char_lm\.models: must have at least one model"):
        parse(profile(set()), files=False)
