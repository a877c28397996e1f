"""README's snippets run as they stand."""

from importlib.util import find_spec

import pytest
from readme import Snippet, snippets

SNIPPETS = snippets()
#: What a snippet lacks today, by its number in the section.
LACKING = {
    1: "model, inputs: nothing defines them",
    3: "sparselib.forms.graph is now sparselib.integrations.graphs; control and model come from the second snippet",
    4: "model_pt, data, projections: nothing defines them; replication.translation.predicted is gone",
}


def cases() -> list:
    return [
        pytest.param(
            number,
            id=f"{number}-{'-'.join(sorted(snippet.needs)) or 'torch'}",
            marks=[pytest.mark.xfail(reason=LACKING[number], strict=True)] if number in LACKING else [],
        )
        for number, snippet in enumerate(SNIPPETS)
    ]


def test_the_section_has_snippets_and_some_need_torch_alone():
    assert len(SNIPPETS) >= 3
    assert not SNIPPETS[0].needs


@pytest.mark.parametrize("number", cases())
def test_every_name_is_defined_in_a_snippet_or_an_earlier_one(number):
    assert SNIPPETS[number].undefined == set()


@pytest.mark.parametrize("number", cases())
def test_the_snippet_runs(number, tmp_path, monkeypatch):
    needed = SNIPPETS[number]
    for module in needed.needs:
        if find_spec(module) is None:
            pytest.skip(f"needs {module}")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for earlier in range(number):
        if earlier not in LACKING and SNIPPETS[earlier].needs <= needed.needs:
            run(SNIPPETS[earlier], namespace)
    run(needed, namespace)


def run(snippet: Snippet, namespace: dict[str, object]) -> None:
    exec(compile(snippet.source, f"README.md: {snippet}", "exec"), namespace)
