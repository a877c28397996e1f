"""Outputs of the default run's notebooks are the same in each process, so that a replay can compare them."""

import json
import re

import pytest

from replication.files.paths import ROOT

NOTEBOOKS = sorted((ROOT / "results/demo/notebooks").rglob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_has_an_address_in_memory(path):
    outputs = [cell["outputs"] for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert re.findall(r"<[^<>]* at 0x[0-9a-f]+>", json.dumps(outputs)) == []
