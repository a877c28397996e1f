"""The snippets of README and of the library's page run as they stand."""

import re
from importlib.util import find_spec

import pytest
from readme import Snippet, snippets

from replication.files.paths import ROOT

SNIPPETS = snippets()
CASES = [
    pytest.param(number, id=f"{number}-{'-'.join(sorted(snippet.needs)) or 'torch'}")
    for number, snippet in enumerate(SNIPPETS)
]


def test_the_section_has_snippets_and_some_need_torch_alone():
    assert len(SNIPPETS) >= 3
    assert any(not snippet.needs for snippet in SNIPPETS)


@pytest.mark.parametrize("number", CASES)
def test_every_name_is_defined_in_a_snippet_or_an_earlier_one(number):
    assert SNIPPETS[number].undefined == set()


@pytest.mark.parametrize("number", CASES)
def test_the_snippet_runs(number, tmp_path, monkeypatch):
    needed = SNIPPETS[number]
    for module in needed.needs:
        if find_spec(module) is None:
            pytest.skip(f"needs {module}")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for earlier in range(number):
        if SNIPPETS[earlier].needs <= needed.needs:
            run(SNIPPETS[earlier], namespace)
    run(needed, namespace)


def run(snippet: Snippet, namespace: dict[str, object]) -> None:
    exec(compile(snippet.source, str(snippet), "exec"), namespace)


PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "library.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_of_the_guide_shows_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": page.stem}
    for block in page.read_text(encoding="utf-8").split("```python\n")[1:]:
        exec(compile(block.partition("```")[0], page.name, "exec"), namespace)


def test_the_readme_is_short():
    assert (ROOT / "README.md").read_text().count("\n") <= 120


@pytest.mark.parametrize("folder", [".", "reported", "benchmarks", "profiles", "config", "docs"])
def test_what_a_page_links_to_is_there(folder):
    for page in (ROOT / folder).glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
