"""`config/README.md` and `config/schema.json` are current, complete and understood by editors."""

import copy
import json
import re

import pytest
from changes import PROFILES, at, paths
from jsonschema import Draft202012Validator

from replication.config import reference
from replication.files.paths import ROOT

README, SCHEMA = ROOT / "config/README.md", ROOT / "config/schema.json"
VALIDATOR = Draft202012Validator(json.loads(SCHEMA.read_text()))


def test_both_files_are_current(tmp_path, monkeypatch):
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    reference.write()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "schema.json"]
    advice = "run `python -m replication.config`"
    assert (tmp_path / "README.md").read_text() == README.read_text(), advice
    assert (tmp_path / "schema.json").read_text() == SCHEMA.read_text(), advice


@pytest.mark.parametrize("name", PROFILES)
def test_editors_find_the_schema_and_accept_a_profile(name):
    text = (ROOT / f"config/{name}.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=schema.json\n")
    VALIDATOR.validate(PROFILES[name])


def test_editors_refuse_unknown_keys_and_nulls():
    for path in list(paths(PROFILES["smoke"])):
        profile = copy.deepcopy(PROFILES["smoke"])
        if isinstance(at(profile, path), dict):
            at(profile, path)["mis spelt"] = 1
            assert not VALIDATOR.is_valid(profile), path
            del at(profile, path)["mis spelt"]
        if path:
            at(profile, path[:-1])[path[-1]] = None
            assert not VALIDATOR.is_valid(profile), path


def test_every_key_has_a_meaning():
    rows = [line.split(" | ") for line in README.read_text().splitlines() if line.startswith("| `")]
    written = {row[0].removeprefix("| ") for row in rows}
    for row in rows[len(re.findall(r"\| `\w.*\.yaml`", README.read_text())) :]:
        key, kind, default, meaning = row
        assert kind, key
        assert default == "required" or default == "optional" or default.startswith("`"), key
        assert re.fullmatch(r".{5,}[.)] \|", meaning), row
    fields = json.loads(SCHEMA.read_text())
    for section in (fields, *fields["$defs"].values()):
        for name in section.get("properties", ()):
            assert any(re.search(rf"\b{re.escape(name)}`", key) for key in written), name


def test_links_lead_to_headings():
    text = README.read_text()
    headings = {heading.lower().replace(" ", "-") for heading in re.findall("^## (.*)$", text, re.MULTILINE)}
    linked = set(re.findall(r"\]\(#([^)]*)\)", text))
    assert linked <= headings
    assert {"masked_lm", "text-corpus", "translator-training", "method"} <= linked
