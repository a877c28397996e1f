"""A predictor from outside: a file and a few lines of a profile, as the guide shows."""

import re
import subprocess

import pandas as pd
import pytest
import yaml
from snakemake.utils import update_config

from replication.config import ConfigurationError, parse
from replication.files.paths import ROOT
from replication.graphs.grids import expand
from replication.predictors.methods import METHODS, styled
from replication.predictors.starter import commands, start
from replication.results.settings import as_columns, labelled
from replication.steps import steps
from workflow.closure import closure, closure_hash

GUIDE = (ROOT / "docs/add-a-predictor.md").read_text()
FILE = re.search(r"```python\n(.*?)\n\nx = torch", GUIDE, re.DOTALL)[1]
FITTED = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)[1]
PROFILE = re.search(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)[1]


@pytest.fixture
def file(tmp_path):
    (tmp_path / "norms.py").write_text(FILE + "\n")
    return tmp_path / "norms.py"


def profile(method, **others) -> dict:
    settings = yaml.safe_load((ROOT / "config/smoke.yaml").read_text())
    settings["masked_lm"]["methods"]["long-keys"] = {"predictor": method} | others
    return settings


def members(run):
    methods = {name: method.given() for name, method in run.masked_lm.methods.items()}
    return [member for member in expand(methods) if member.method == "long-keys"]


def test_the_guides_profile_and_command(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    added = yaml.safe_load(PROFILE)["masked_lm"]["methods"]["long-keys"]
    built = [member.build({}, 0) for member in members(parse(profile(added.pop("predictor"), **added)))]
    assert list(map(str, built)) == [f"LongKeys(length={length})" for length in added["length"]]
    command = re.search(r"replicate check norms.*", GUIDE)[0]
    checked = subprocess.run(command.split(), cwd=file.parent, capture_output=True, text=True, check=True)
    assert checked.stdout == "norms.py:LongKeys obeys the laws of predictors\n"


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("norms.py:LongKeys", {"lenght": 1.0, "length": 1.0}, "long-keys.lenght: unknown key; .* takes length"),
        ("norms.py:LongKeys", {}, "long-keys.length: missing key"),
        ("norms.py:LongKeys", {"length": "far"}, "long-keys.length: must be of type float"),
        ("norms.py:Missing", {}, "long-keys.predictor: .* has no class Missing"),
        ("norms.py:dataclass", {}, "long-keys.predictor: must be a dataclass with `needs` and `predict`"),
        ("absent.py:LongKeys", {}, "long-keys.predictor: must name a file or module that is there"),
        ("absent_module:LongKeys", {}, "long-keys.predictor: must name a file or module that is there"),
        ("norms.py:", {}, "long-keys.predictor: must be a file or module and a class"),
        ("broken.py:LongKeys", {}, "long-keys.predictor: .* ZeroDivisionError"),
    ],
)
def test_what_cannot_work_is_refused_when_the_profile_is_read(file, monkeypatch, name, arguments, says):
    monkeypatch.chdir(file.parent)
    (file.parent / "broken.py").write_text("1 / 0\n")
    with pytest.raises(ConfigurationError, match=f"masked_lm.methods.{says}"):
        parse(profile(name, **arguments))


def test_reading_a_stored_run_needs_no_file_and_runs_no_code(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("raise SystemExit('this code ran')\n")
    parse(profile("broken.py:LongKeys", length=1.0), files=False)
    run = parse(profile("norms.py:LongKeys", length=1.0), files=False)
    with pytest.raises(ImportError, match="no such file"):
        members(run)[0].build({}, 0)


def test_files_of_one_name_are_different_modules(file, tmp_path):
    (tmp_path / "torch.py").write_text(FILE.replace("LongKeys", "Other") + "\n")
    for name in (f"{tmp_path}/torch.py:Other", f"{file}:LongKeys"):
        (member,) = members(parse(profile(name, length=1.0)))
        assert type(member.build({}, 0)).__name__ == name.rpartition(":")[2]
    import torch

    assert torch.__version__


def test_its_arguments_are_columns_of_their_own(file):
    run = parse(profile(f"{file}:LongKeys", length=[0.5, 2.0]))
    table = pd.DataFrame({"method": "long-keys", "setting": [member.setting for member in members(run)]})
    assert as_columns(table)["own_length"].tolist() == [0.5, 2.0]
    assert labelled(as_columns(table))["setting"].tolist() == table["setting"].tolist()


def test_its_code_counts_and_no_other_steps(file):
    name = f"{file}:LongKeys"
    assert closure("sweep", [name])[-1] == str(file)
    assert str(file) not in closure("sweep", ["Distance"])
    before = closure_hash.__wrapped__("sweep", (name,))
    file.write_text(FILE + "\n# another line\n")
    assert closure_hash.__wrapped__("sweep", (name,)) != before


def test_figures_show_it_behind_the_others():
    shown = styled(["long-keys", "full", "gold graph", "window", "routing", "long-keys", "landmarks"])
    assert list(shown) == ["routing", "window", "long-keys", "landmarks"]
    assert shown["long-keys"].label == "long-keys"
    assert {method.marker for method in METHODS.values()}.isdisjoint(
        {shown[name].marker for name in ("long-keys", "landmarks")}
    )


def test_the_guides_learned_threshold_takes_the_keys_of_its_fit(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    (file.parent / "learned.py").write_text(f"{FILE}\n\n\n{FITTED}")
    assert [member.arguments for member in members(parse(profile("learned.py:NearEnough", recall=[0.5, 0.9])))] == [
        {"recall": 0.5},
        {"recall": 0.9},
    ]
    for given, says in (
        ({"distance": 1.0, "recall": 0.5}, "unknown key; .* takes recall"),
        ({}, "recall: missing key"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            parse(profile("learned.py:NearEnough", **given))
    command = ["replicate", "check", "learned.py:NearEnough", "--set", "recall=0.9"]
    checked = subprocess.run(command, capture_output=True, text=True, check=True)
    assert checked.stdout == "learned.py:NearEnough obeys the laws of predictors\n"


def test_files_to_start_from_work_as_they_are(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    file, added = start("my-idea", tmp_path)
    assert len(added.read_text().splitlines()) <= 25
    checked = subprocess.run(commands("my-idea")[0].split(), capture_output=True, text=True, check=True)
    assert checked.stdout == "my_idea.py:MyIdea obeys the laws of predictors\n"
    settings = yaml.safe_load((ROOT / "config/demo.yaml").read_text())
    update_config(settings, yaml.safe_load(added.read_text()))
    run = parse(settings)
    assert "my-idea" in run.masked_lm.methods
    assert [row.method for row in run.masked_lm.compare] == ["my-idea"]
    before = file.read_text(), added.read_text()
    added.unlink()
    with pytest.raises(FileExistsError, match=r"my_idea\.py: already exists; choose another name"):
        start("my-idea", tmp_path)
    assert not added.exists()
    assert file.read_text() == before[0]


@pytest.mark.parametrize("name", ["My idea", "../idea", "window", "none", "-x", ""])
def test_names_that_no_method_can_have_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match="`name` must be"):
        start(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_own_predictor_is_stored_once_per_file(file):
    settings = profile(f"{file}:LongKeys", length=1.0)
    settings["masked_lm"]["replaced"]["methods"]["long-keys"] = {"predictor": f"{file}:LongKeys", "length": 2.0}
    settings["retrofit"]["rules"]["long-keys"] = {"predictor": f"{file}:LongKeys", "length": 3.0}
    run = parse(settings)
    (step,) = (step for step in steps(run) if step.command == "store_predictor")
    assert step.text() == [file]
    (made,) = step.makes
    assert made.name.endswith("norms.py")
    assert made.parent.as_posix() == "results/smoke/predictors"
    (measuring,) = (step for step in steps(run) if step.command == "measure_rules")
    assert closure("measure_rules", measuring.predictors)[-1] == str(file)
    settings["retrofit"]["rules"]["long-keys"]["lenght"] = 1.0
    with pytest.raises(ConfigurationError, match=r"retrofit.rules.long-keys.lenght: unknown key; .* takes length"):
        parse(settings)
