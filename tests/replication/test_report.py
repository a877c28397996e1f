"""The page about a run."""

import json
import os
import re
import shutil
import subprocess
from base64 import b64decode
from pathlib import Path

import pandas as pd
import pytest
from browser import act, in_a_browser
from command_line import list_files, run

from replication import report
from replication.claims.overview import in_abstracts
from replication.files import manifest
from replication.files.manifest import read_manifest
from replication.files.paths import ROOT
from replication.files.provenance import provenance
from replication.files.storage import FormatError
from replication.report.facts import texts
from replication.report.rendered import render

SVG = """<?xml version="1.0"?>
<!DOCTYPE svg>
<svg width="10pt"><metadata><b/></metadata><defs><style type="text/css">*{fill: red}</style></defs><text>a &amp; b</text></svg>
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
    ledger = pd.DataFrame([judged] * len(claims)).assign(id=claims["id"], stability="")
    ledger.loc[ledger["id"] == "mlm-recall-distance-first", "stability"] = "changes with the Pareto set: undecided"
    ledger.loc[0, ["verdict", "effect", "interval", "n"]] = ["untested", None, "", ""]
    ledger.to_csv(results / "claims.csv", index=False)
    os.utime(results / "claims.csv", (10**9, 10**9))  # in the year 2001
    (tmp_path / "reported/other").mkdir(parents=True)
    ledger.assign(verdict="fails", effect=-1.0).iloc[1:2].to_csv(tmp_path / "reported/other/claims.csv", index=False)
    (results / "config.yaml").write_text("profile: mine\nmasked_lm: {corpus: {source: bible}}\n")
    (results / "figures/sparsefinder/fig04_tradeoff.svg").write_text(SVG)
    (results / "figures/alone.svg").write_text(SVG)  # without a notebook
    cell = {
        "cell_type": "markdown",
        "id": "a",
        "metadata": {},
        "source": "# Figure 4: *a* title <b>\n\nFirst, [linked](x.ipynb).\n\nSecond.",
    }
    parameters = {
        "cell_type": "code",
        "source": 'profile: str = "demo"',
        "outputs": [],
        "metadata": {},
        "execution_count": 1,
    }
    cells = [cell, parameters | {"id": "b"}, parameters | {"id": "c", "source": '# Parameters\nprofile = "mine"\n'}]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (results / "notebooks/sparsefinder/fig04_tradeoff.ipynb").write_text(json.dumps(notebook))
    list_files(results)
    list_files(tmp_path / "reported/other")
    return tmp_path


def test_it_has_verdicts_claims_and_figures_with_what_they_find(root):
    page = report.page(root, "mine")
    claims = pd.read_csv(root / "config/published/claims.csv")
    count, findings = len(claims), (claims["kind"] == "finding").sum()
    # The first claim is an identity, and one verdict changes with a choice.
    assert f"<b>{findings - 1}</b>holds" in page
    assert "<b>1</b>undecided" in page
    assert f"<b>{count - findings}</b>identity or own claim" in page
    assert page.count('<tr id="') == page.count("data-filed=") == count
    assert page.count("<figure") == 1
    section = page[page.index('<section class="figure" id="sparsefinder-fig04_tradeoff">') : page.index("</section>")]
    assert "First, linked." in section
    assert "Second" not in section
    # The claim that was not tested has nothing to say below the figure that shows it.
    assert "#sparse-consistency" not in section
    assert "#mlm-recall-distance-first" in section


def test_a_comparison_of_the_profile_is_a_row_and_no_finding_of_a_paper(root):
    before, results = report.page(root, "mine"), root / "results/mine"
    compare = "[{method: routing, against: [window]}]"
    (results / "config.yaml").write_text(
        f"profile: mine\nmasked_lm: {{corpus: {{source: bible}}, compare: {compare}}}\n"
    )
    list_files(results)
    page = report.page(root, "mine")
    assert "This profile" in page
    assert "recall, masked_lm: routing is at least as good as window" in page
    number = re.compile("<b>([0-9]+)</b>(holds|undecided|identity or own claim)")
    found, expected = ({name: int(count) for count, name in number.findall(text)} for text in (page, before))
    assert found == expected | {"identity or own claim": expected["identity or own claim"] + 1}


def test_the_top_has_whose_claims_the_text_date_and_main_verdicts_and_then_figure_4(root):
    page = report.page(root, "mine")
    places = ["Sparsefinder (Treviso", "Berean Standard Bible", "2001", 'id="main"', 'id="sparsefinder-fig04_tradeoff"']
    places = [page.index(text) for text in (*places, 'id="claims"', 'id="mlm-recall-distance-first"')]
    assert places == sorted(places)
    main = page[page.index('<table class="main">') : page.index("</table>")]
    shown = in_abstracts(pd.read_csv(root / "config/published/claims.csv", keep_default_na=False))
    assert main.count('<td class="verdict">') == len(shown) > 5
    assert main.count("changes with the Pareto set") == 1
    # What another run says of a claim is one phrase there, and folded in the table of all claims.
    assert "1 undecided" in main  # it fails there, but not stably
    row = page[page.index('<tr id="mlm-recall-distance-first"') :]
    folded = row[row.index("<details>") : row.index("</details>")]
    assert "other: " in folded
    assert "1 other run<" in folded


def test_every_picture_has_a_text_alternative(root):
    page = report.page(root, "mine")
    pictures = re.findall(r"<svg[^>]*>", page)
    assert len(pictures) > 50
    assert [picture for picture in pictures if 'aria-label="' not in picture] == []
    assert 'alt="Figure 4: *a* title &lt;b&gt;"' in page


def test_a_verdict_on_generated_text_is_filed_as_a_demonstration(root):
    path = root / "results/mine/claims.csv"
    ledger = pd.read_csv(path, keep_default_na=False)
    ledger.loc[1, "data"] = "generated"
    ledger.to_csv(path, index=False)
    list_files(path.parent)
    page = report.page(root, "mine")
    assert f"<b>{(pd.read_csv(root / 'config/published/claims.csv')['kind'] == 'finding').sum() - 1}</b>holds" in page
    assert "<b>1</b>demonstration" in page


def test_it_states_the_commit_of_a_checkout(root):
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "-C", str(root), *identity, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    head = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert f"<dd>{head[:10]}" in report.page(root, "mine")


def test_a_text_without_a_name_of_its_own_is_called_by_its_folder():
    settings = {
        "masked_lm": {"corpus": {"source": "folder", "path": "data/x"}},
        "char_lm": {"corpora": {"a": {"source": "bible"}}},
    }
    settings["captioning"] = {"source": {"source": "scenes"}}
    assert list(texts(settings)) == ["data/x", "Berean Standard Bible", "drawn scenes (a demonstration)"]


def test_a_notebook_becomes_a_page_with_links_to_pages_and_text_alternatives(tmp_path):
    picture = {"output_type": "display_data", "data": {"image/png": "AAAA"}, "metadata": {}}
    code = {
        "cell_type": "code",
        "id": "b",
        "metadata": {},
        "source": "x = 1",
        "outputs": [picture],
        "execution_count": 1,
    }
    text = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# A *title*\n\n[next](other.ipynb)"}
    notebook = {"cells": [text, code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    page = render(tmp_path / "a.ipynb")
    assert 'href="other.html"' in page
    assert 'alt="A *title*"' in page
    assert not re.search(r'(?:src|<link[^>]*href)="https?:', page)


def test_text_is_escaped_and_pictures_bring_no_rules_along(root):
    page = report.page(root, "mine")
    assert "3 &lt;seeds&gt;" in page
    assert "3 <seeds>" not in page
    assert "fill: red" not in page


def test_a_run_without_a_ledger_is_named(root):
    with pytest.raises(FileNotFoundError, match=r"none: has no claims\.csv"):
        report.page(root, "none")


def test_a_notebook_of_another_run_is_refused(root):
    """A stored run's figure, executed into this run's folder, was shown and archived as this run's."""
    path = root / "results/mine/notebooks/sparsefinder/fig04_tradeoff.ipynb"
    path.write_text(path.read_text().replace('\\"mine\\"', '\\"brown\\"'))
    with pytest.raises(FormatError, match=r"fig04_tradeoff\.ipynb: must show the run 'mine', got 'brown'"):
        report.page(root, "mine")


#: Pictures that run or load something when a page has them as elements.
HOSTILE = (
    "<script>alert(1)</script>", "<SCRIPT>alert(1)</SCRIPT>", '<g onload="alert(1)"/>', 
    "<foreignObject><iframe/></foreignObject>",
    "<FOREIGNOBJECT><body onload='alert(1)'/></FOREIGNOBJECT>", '<a href="javascript:alert(1)"/>',
    '<iframe srcdoc="&lt;script&gt;alert(1)&lt;/script&gt;"/>', "<style><![CDATA[@import 'https://elsewhere/';]]></style>",
    '<meta http-equiv="refresh" content="0;url=https://elsewhere/"/>', '<image href="https://elsewhere/x.png"/>', "<g>",
    "</svg></figure><script>alert(1)</script>",
)  # fmt: skip


@pytest.mark.parametrize("content", HOSTILE)
def test_pictures_are_shown_as_images_in_which_browsers_run_and_load_nothing(root, content):
    path = root / "results/mine/figures/sparsefinder/fig04_tradeoff.svg"
    path.write_text(path.read_text().replace("</svg>", f"{content}</svg>"))
    page = report.page(root, "mine")
    (shown,) = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]*)"', page)
    assert b64decode(shown) == path.read_bytes()
    assert content not in page
    assert "https://elsewhere" not in page
    assert ".svg" not in page  # a browser runs the scripts of a picture that it opens


#: What nothing on a page may be, whatever a notebook has.
ACTIVE_HTML = re.compile(
    r"<\s*/?(script|iframe|object|embed|form|input|svg|math|link|base|video|audio|style)\b|\son\w+\s*=|javascript:|srcdoc|refresh"
    r"|(src|href|background|action)\s*=\s*[\"']?\s*data:text|url\(",
    re.IGNORECASE,
)
HOSTILE_HTML = (
    "<script>alert(1)</script>", "<ScRiPt src='https://elsewhere/x.js'></ScRiPt>", "<script>alert(1)</script \n>", "<script>",
    "<img src=x onerror=alert(1)>", "<img src='https://elsewhere/x.png'>", "<svg onload=alert(1)></svg>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>", "<a href='javascript:alert(1)'>x</a>",
    "<a href='java\tscript:alert(1)'>x</a>", "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<style>@import 'https://elsewhere/x.css';</style>", "<td style='background: url(https://elsewhere/x)'>x</td>",
    "<meta http-equiv=refresh content='0;url=https://elsewhere'>", "<base href='https://elsewhere/'>", 
    "<form action=x><input></form>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>", "<details open ontoggle=alert(1)>x</details>",
)  # fmt: skip


def page_of(folder, kind, content):
    """Return the page of a notebook that has this content in an output, or in a cell of text."""
    data = {"text/html": content, "text/plain": "x"} if kind == "html" else {kind: content, "text/plain": "x"}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    code = {"cell_type": "code", "id": "b", "metadata": {}, "source": "x", "outputs": [output], "execution_count": 1}
    text = {
        "cell_type": "markdown",
        "id": "a",
        "metadata": {},
        "source": "# Title\n\n" + (content if kind == "cell" else ""),
    }
    cells = [text, code | ({"outputs": []} if kind == "cell" else {})]
    (folder / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    page = render(folder / "a.ipynb")
    assert "default-src 'none'; img-src data:;" in page
    return page[page.index("<body>") :]


@pytest.mark.parametrize("kind", ["text/html", "text/markdown", "image/svg+xml", "text/latex", "cell"])
@pytest.mark.parametrize("content", HOSTILE_HTML)
def test_scripts_of_a_notebook_reach_no_page(tmp_path, content, kind):
    found = ACTIVE_HTML.search(re.sub(r"&lt;.*?&gt;|&quot;", "", page_of(tmp_path, kind, content)))
    assert found is None, found


@pytest.mark.parametrize("kind", ["application/javascript", "image/png", "image/jpeg", "text/plain"])
def test_scripts_of_other_outputs_reach_no_page(tmp_path, kind):
    page = page_of(tmp_path, kind, '"><script>alert(1)</script>')
    assert "<script" not in page


def test_a_table_of_pandas_stays_a_table(tmp_path):
    table = pd.DataFrame({"recall": [0.5]}, index=["k-means & more"])._repr_html_()
    page = page_of(tmp_path, "text/html", table)
    assert "<th>k-means &amp; more</th>" in page
    assert '<table class="dataframe">' in page
    assert "vertical-align" not in page  # nor its rules as text


FIGURE = "figures/sparsefinder/fig04_tradeoff.svg"
NOTEBOOK = "notebooks/sparsefinder/fig04_tradeoff.ipynb"


def write_report(root, results="results/mine", output="results/mine/report.html"):
    return run(root, "report", results, config=None, output=output)


def test_the_stage_writes_the_page_and_a_page_for_each_notebook(root):
    assert write_report(root).exit_code == 0
    assert write_report(root).exit_code == 0  # over the pages of the first
    assert "holds" in (root / "results/mine/report.html").read_text()
    assert (root / "results/mine" / NOTEBOOK).with_suffix(".html").exists()


def test_a_run_with_a_passage_has_an_explorer_to_which_its_page_leads(root):
    assert write_report(root).exit_code == 0
    assert "explorer.html" not in (root / "results/mine/report.html").read_text()
    assert not (root / "results/mine/explorer.html").exists()
    (root / "results/mine/masked_lm").mkdir()
    (root / "results/mine/masked_lm/passage.json").write_text('{"words": ["<b>"]}')
    list_files(root / "results/mine")
    assert write_report(root).exit_code == 0
    assert write_report(root).exit_code == 0  # over the explorer of the first
    assert 'href="explorer.html"' in (root / "results/mine/report.html").read_text()
    assert '{"words": ["\\u003cb\\u003e"]}' in (root / "results/mine/explorer.html").read_text()


@pytest.mark.parametrize("place", [FIGURE, NOTEBOOK, "claims.csv", "config.yaml"])
def test_what_was_edited_since_it_was_made_does_not_reach_the_page(root, place):
    """Another run's Figure 4, and a notebook with every "fails" made "holds", did."""
    path = root / "results/mine" / place
    path.write_text(path.read_text().replace("a", "b", 1))
    result = write_report(root)
    assert result.exit_code == 1
    assert f"{path.name}: has changed since stage by made it" in result.stderr
    assert not (root / "results/mine/report.html").exists()


def test_what_no_stage_has_drawn_for_the_run_is_not_shown(root):
    for place, name in ((FIGURE, "another.svg"), (NOTEBOOK, "another.ipynb")):
        path = root / "results/mine" / place
        path.with_name(name).write_bytes(path.read_bytes())
    assert write_report(root).exit_code == 0
    assert "another" not in (root / "results/mine/report.html").read_text()
    assert not (root / "results/mine" / NOTEBOOK).with_name("another.html").exists()


@pytest.fixture
def draw(root, monkeypatch):
    """Draw Figure 4 again, as it lies there."""
    monkeypatch.setattr("papermill.execute_notebook", lambda *arguments, **options: None)
    arguments = str(ROOT / "notebooks/sparsefinder/fig04_tradeoff.ipynb"), str(root / "results/mine" / NOTEBOOK)
    return lambda: run(root, "draw", *arguments, config=None, set="profile=mine", results=root / "results/mine")


def test_a_redrawn_figure_counts_once_it_is_listed(root, draw):
    path = root / "results/mine" / FIGURE
    path.write_text(path.read_text().replace("a &amp; b", "redrawn"))
    assert draw().exit_code == 0
    assert write_report(root).exit_code == 0


def test_a_notebook_of_another_run_is_not_listed(root, draw):
    path = root / "results/mine" / NOTEBOOK
    path.write_text(path.read_text().replace('\\"mine\\"', '\\"brown\\"'))
    assert "fig04_tradeoff.ipynb: must show the run 'mine', got 'brown'" in draw().stderr


def test_versions_and_processor_are_those_of_the_run(root, monkeypatch):
    """They were those of the machine that writes the page."""
    here = provenance()
    monkeypatch.setattr(manifest, "provenance", lambda: here | {"hardware": "A Large GPU", "torch": "1.2.3"})
    list_files(root / "results/mine")
    monkeypatch.setattr(manifest, "provenance", lambda: here | {"hardware": "the writer's", "torch": "9.9.9"})
    assert write_report(root).exit_code == 0
    page = (root / "results/mine/report.html").read_text()
    assert "<dt>Machine</dt><dd>A Large GPU</dd>" in page
    assert "torch: 1.2.3" in page
    assert "9.9.9" not in page
    assert "the writer" not in page


def test_a_report_of_another_checkouts_run_shows_that_run(root, tmp_path):
    """It verified that run, and showed the run of the same name in this checkout."""
    other = tmp_path / "other"
    shutil.copytree(root, other, ignore=shutil.ignore_patterns("other"))
    (other / "results/mine/config.yaml").write_text("profile: mine\nchar_lm: {corpora: {a: {source: digits}}}\n")
    list_files(other / "results/mine")
    assert write_report(root, "other/results/mine", "other.html").exit_code == 0
    assert "handwritten digits" in (root / "other.html").read_text()
    assert "handwritten digits" not in report.page(root, "mine")


def test_a_report_of_a_stored_run_is_refused(root):
    """It showed the run below results/ with the same name."""
    shutil.copytree(root / "results/mine", root / "reported/mine")
    result = write_report(root, "reported/mine", "stored.html")
    assert result.exit_code == 1
    assert "`results` must be the folder of a run below results/, got reported/mine" in result.stderr


def test_every_notebook_that_is_drawn_for_a_run_stays_listed(root, draw, monkeypatch):
    """A second one must not replace the first in the run's manifest."""
    assert draw().exit_code == 0
    second = root / "results/mine" / Path(NOTEBOOK).with_name("fig05_coreference.ipynb")
    second.write_bytes((root / "results/mine" / NOTEBOOK).read_bytes())
    arguments = str(ROOT / "notebooks/sparsefinder/fig05_coreference.ipynb"), str(second)
    done = run(root, "draw", *arguments, config=None, set="profile=mine", results=root / "results/mine")
    assert done.exit_code == 0, done.stderr
    assert {NOTEBOOK, str(Path(NOTEBOOK).with_name(second.name))} <= read_manifest(root / "results/mine")["made"].keys()


def test_two_figures_of_one_notebook_stay_listed(root, draw):
    """Figures 8 and 9 share a notebook, and the second one took the first one's place."""
    names = ("fig08_heads", "fig09_heads")
    for name in names:
        path = root / "results/mine" / Path(NOTEBOOK).with_name(f"{name}.ipynb")
        path.write_bytes((root / "results/mine" / NOTEBOOK).read_bytes())
        arguments = str(ROOT / "notebooks/sparsefinder/fig08_heads.ipynb"), str(path)
        given = ["profile=mine", f"figure={name}"]
        done = run(root, "draw", *arguments, config=None, set=given, results=root / "results/mine")
        assert done.exit_code == 0, done.stderr
    made = read_manifest(root / "results/mine")["made"].keys()
    assert {str(Path(NOTEBOOK).with_name(f"{name}.ipynb")) for name in names} <= made


@in_a_browser
def test_papers_are_folded_until_a_claim_is_searched_or_linked_to(root):
    path = root / "report.html"
    path.write_text(report.page(root, "mine"), encoding="utf-8")
    last = pd.read_csv(root / "config/published/claims.csv")["id"].iloc[-1]
    shown = act(path, f"""
        const papers = [...page.querySelectorAll("details.paper")], opened = () => papers.map(one => Number(one.open)).join("");
        const rows = () => [...page.querySelectorAll("tr[data-filed]")].filter(row => row.checkVisibility()).length;
        const search = page.querySelector(".controls input"), said = [opened(), rows()];
        search.value = "{last}"; search.dispatchEvent(new Event("input")); said.push(rows());
        search.value = ""; search.dispatchEvent(new Event("input")); said.push(opened());
        page.defaultView.location.hash = "{last}";
        setTimeout(() => {{ said.push(opened(), Number(page.getElementById("{last}").checkVisibility()));
          document.title = said.join(); }}, 200);""")  # fmt: skip
    none = "0" * shown.index(",")
    assert shown.split(",") == [none, "0", "1", none, f"{none[1:]}1", "1"]
