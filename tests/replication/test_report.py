"""The page about a run."""

import json

import pandas as pd
import pytest

from replication import report
from replication.files.paths import ROOT

SVG = """<?xml version="1.0"?>
<!DOCTYPE svg>
<svg width="10pt"><metadata><b/></metadata><defs><style type="text/css">*{stroke: red}</style></defs><text>a & b</text></svg>
"""


@pytest.fixture
def root(tmp_path):
    claims = pd.read_csv(ROOT / "config/published/claims.csv")
    (tmp_path / "config/published").mkdir(parents=True)
    claims.to_csv(tmp_path / "config/published/claims.csv", index=False)
    results = tmp_path / "results/mine"
    for folder in ("figures/sparsefinder", "notebooks/sparsefinder"):
        (results / folder).mkdir(parents=True)
    judged = {"verdict": "holds", "effect": 2.5, "interval": "2 to 3", "n": "3 <seeds>", "premise": "", "numbers": ""}
    judged |= {"where": "", "change": "", "data": "real"}
    ledger = pd.DataFrame([judged] * len(claims)).assign(id=claims["id"])
    ledger.loc[0, ["verdict", "effect", "interval", "n"]] = ["untested", None, "", ""]
    ledger.to_csv(results / "claims.csv", index=False)
    (results / "config.yaml").write_text("profile: mine\n")
    (results / "figures/sparsefinder/fig04_tradeoff.svg").write_text(SVG)
    (results / "figures/alone.svg").write_text(SVG)  # without a notebook
    cell = {
        "cell_type": "markdown",
        "id": "a",
        "metadata": {},
        "source": "# Figure 4: *a* title\n\nFirst, [linked](x.ipynb).\n\nSecond.",
    }
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (results / "notebooks/sparsefinder/fig04_tradeoff.ipynb").write_text(json.dumps(notebook))
    return tmp_path


def test_it_has_verdicts_claims_and_figures_with_what_they_find(root):
    page = report.page(root, "mine")
    count = len(pd.read_csv(root / "config/published/claims.csv"))
    assert f"<b>{count - 1}</b>holds" in page
    assert page.count('<tr id="') == count
    assert page.count("<figure>") == 1
    section = page[page.index('<section id="sparsefinder-fig04_tradeoff">') : page.index("</section>")]
    assert "First, linked." in section
    assert "Second" not in section
    # The claim that was not tested has nothing to say below the figure that shows it.
    assert "#sparse-consistency" not in section
    assert "#mlm-recall-distance-first" in section


def test_text_is_escaped_and_pictures_bring_no_rules_along(root):
    page = report.page(root, "mine")
    assert "3 &lt;seeds&gt;" in page
    assert "3 <seeds>" not in page
    assert "stroke: red" not in page
    assert "<text>a & b</text>" in page


def test_a_run_without_a_ledger_is_named(root):
    with pytest.raises(FileNotFoundError, match=r"none: has no claims\.csv"):
        report.page(root, "none")
