"""The article of `make article`: its numbers come from files, and it is as long as journals ask for."""

import re
import sys

import pytest

from replication.files.paths import ROOT
from replication.tables import claims

sys.path.insert(0, str(ROOT / "workflow/scripts"))

import article

TEXT = article.SOURCE.read_text(encoding="utf-8").partition("// The text: without digits")[2].partition("\n")[2]
#: Names with digits, which count nothing.
NAMES = ("1.5-entmax", "AdaSplash-2")
WORDS = "two three four five six seven eight nine ten eleven twelve dozen hundred thousand half third quarter percent".split()


def numbers(text: str) -> list[str]:
    """Return numbers in digits or words; half of the settings is a word of the method."""
    for name in (*NAMES, "half of the settings"):
        text = text.replace(name, "")
    return re.findall(rf"\w*\d[\w.]*|\b(?:{'|'.join(WORDS)})s?\b", text, re.IGNORECASE)


@pytest.fixture(scope="module")
def inputs():
    return article.data()


@pytest.fixture(scope="module")
def page(inputs):
    return article.article("html", inputs).decode()


def test_no_number_is_typed_by_hand():
    assert len(TEXT) > 5000
    assert numbers(TEXT) == []


@pytest.mark.parametrize("typed", ["12 findings hold", "twelve findings hold", "a third of them", "by 3.05 points"])
def test_a_number_typed_by_hand_is_found(typed):
    assert numbers(TEXT + typed)


def test_it_counts_what_the_ledgers_count(inputs, page):
    outcomes = claims.outcomes()
    decided = outcomes[(outcomes != "").any(axis=1)]
    holds = sum(outcome == "holds" for outcome in decided.to_numpy().flat)
    assert f"{len(decided)} of {len(outcomes)} findings have a verdict" in page.replace("\n", " ")
    assert f"{holds} hold, " in page
    assert len(inputs["findings"]) == (ROOT / "docs/findings.md").read_text(encoding="utf-8").count("**") // 2


def test_each_figure_names_its_source_its_run_and_its_commit(inputs, page):
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page, re.DOTALL)
    drawn = [caption for caption in captions if "Drawn by" in caption]
    assert len(drawn) == len(inputs["figures"])
    for figure in inputs["figures"].values():
        named = [text for text in drawn if all(figure[key] in text for key in ("drawn_by", "run", "commit"))]
        assert len(named) == 1


def test_a_figure_without_its_file_is_refused():
    with pytest.raises(FileNotFoundError, match=r"reported/none\.svg: a figure of the article"):
        article._figure("none", "workflow/scripts/figures.py", "demo")


def test_it_has_six_to_eight_pages(inputs):
    assert 6 <= len(article.article("png", inputs)) <= 8


def test_every_reference_is_cited():
    keys = re.findall(r"^@\w+\{(\w+),", (ROOT / "docs/article.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(keys) > 10
    assert [key for key in keys if not re.search(rf"@{key}\b", TEXT)] == []


def test_it_is_written_over_an_earlier_one(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["article.py", str(tmp_path)])
    (tmp_path / "article.pdf").write_bytes(b"earlier")
    article.main()
    assert (tmp_path / "article.pdf").read_bytes().startswith(b"%PDF")
    assert "</html>" in (tmp_path / "article.html").read_text(encoding="utf-8")
