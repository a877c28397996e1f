"""conda, pip and the lock install the same versions, and what is installed is what they say."""

import itertools
import re
import tomllib
from importlib.metadata import version

import pytest
import yaml

from replication.files.packages import PACKAGES
from replication.files.paths import ROOT

LIBRARY, REPLICATION = (
    tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in (".", "replication")
)


def pins(requirements):
    """Name to version, without the platforms that a pin is for."""
    return dict(line.split(";")[0].strip().lower().split("==") for line in requirements)


REPRODUCE = pins(REPLICATION["optional-dependencies"]["reproduce"])
LOCK = pins((ROOT / "requirements.lock").read_text().splitlines())


def test_conda_names_the_pins_of_pip():
    *_, pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert pins(pip["pip"]) == REPRODUCE


def test_the_lock_holds_the_same_pins():
    assert {name: LOCK.get(name) for name in REPRODUCE} == REPRODUCE


def test_the_lock_holds_every_package_that_is_asked_for():
    asked = set()
    for project in (LIBRARY, REPLICATION):
        for requirement in itertools.chain(project["dependencies"], *project["optional-dependencies"].values()):
            asked.add(re.match(r"[a-z0-9-]+", requirement)[0])
    assert asked - {"sparselib"} <= LOCK.keys()


def test_the_lock_leaves_out_what_slows_every_notebook():
    """jsonschema imports it if it is there, for one format that nothing here uses, and it compiles a grammar for seconds."""
    assert "rfc3987-syntax" not in LOCK


@pytest.mark.parametrize("name", ["fairseq", *PACKAGES])
def test_conda_users_are_told_the_packages_to_install_without_dependencies(name):
    assert f"{name}=={LOCK[name]}" in (ROOT / "environment.yml").read_text()


@pytest.mark.parametrize("name", REPRODUCE)
def test_what_is_installed_is_what_is_pinned(name):
    assert version(name).split("+")[0] == REPRODUCE[name]
