"""Files about the project: its citation, changes and issue templates."""

import re
import tomllib

import yaml

from replication.files.paths import ROOT


def test_the_citation_prefers_the_paper_and_lists_its_companions():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["preferred-citation"]["title"] == "Predicting Attention Sparsity in Transformers"
    titles = [paper["title"].partition(":")[0] for paper in citation["references"]]
    companions = ["Explicit Sparse Transformer", "Extremely Sparse Transformer", "Generating Long Sequences"]
    assert [name for name in companions if not any(title.startswith(name) for title in titles)] == []
    assert all(paper["authors"] for paper in [citation["preferred-citation"], *citation["references"]])


def test_the_version_has_a_section_of_changes_and_the_same_number_in_the_citation():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {version}\n" in changes
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == version


def test_issue_templates_ask_for_something():
    templates = [path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
    assert len(templates) >= 2
    for path in templates:
        template = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert template["name"]
        assert template["description"]
        ids = [part["id"] for part in template["body"]]
        assert len(ids) == len(set(ids)) >= 2


def test_where_things_live_is_true():
    """Of each place in the table of CONTRIBUTING; a second path in a cell may leave out the folder of the first."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE)
    places = [place for cell in table for place in re.findall(r"`([\w./-]+/[\w./-]*)`", cell)]
    assert len(places) > 20
    assert [
        place for place in places if not (ROOT / place).exists() and not (ROOT / "replication" / place).exists()
    ] == []


def test_no_recipe_has_a_target_behind_a_configuration_file():
    """Snakemake takes what follows the file, too, for a configuration file."""
    recipes = (ROOT / "Makefile").read_text(encoding="utf-8")
    files = re.findall(r"--configfile (\S+)(?: (\S+))?", recipes)
    assert len(files) > 1
    assert [(file, then) for file, then in files if then and not then.startswith("-")] == []


def test_ci_and_pre_commit_call_the_commands_of_the_readme():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    assert [step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step] == ["bash .ci/run"]
    assert (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()[-1] == "make test"
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [hook["entry"] for hook in repository["hooks"]] == ["make lint"]
