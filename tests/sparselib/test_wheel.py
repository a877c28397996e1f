"""What is installed: the library alone, which runs beside torch alone, and the replication without the library."""

import shutil
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import jedi
import pytest
from readme import snippets
from setuptools import find_namespace_packages
from wheels import build_wheel, copy_checkout, environment_of, files_of

from replication.files.paths import ROOT

#: Packages that need torch alone, and other public modules.
ALONE = [f"sparselib{package}" for package in ("", ".blocks", ".forms", ".kernels", ".masks", ".predictors")]
OTHERS = [
    f"sparselib.{module}"
    for module in ("control", "dense_attention", "graphs", "huggingface", "metrics", "normalizers", "projections")
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    return copy_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def library(checkout, tmp_path_factory) -> Path:
    return build_wheel(checkout, tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def beside_torch(library, tmp_path_factory) -> Path:
    return environment_of(library, tmp_path_factory.mktemp("environment"), "torch")


def sources(folder: str, installed: str) -> set[str]:
    return {f"{installed}/{path.relative_to(ROOT / folder)}" for path in (ROOT / folder).rglob("*.py")}


def test_the_librarys_wheel_holds_the_library_and_the_kernels(library):
    expected = sources("sparselib", "sparselib") | sources("kernels", "sparselib/kernels")
    package = {"sparselib/kernels/__init__.py", "sparselib/py.typed"}
    compiled = {name for name in files_of(library) if name.endswith(".so.1")}
    assert files_of(library) - compiled == expected - {"sparselib/kernels.py"} | package
    assert {PurePosixPath(name).parent.as_posix() for name in compiled} <= {"sparselib/kernels"}
    assert bool(compiled) == bool(shutil.which("g++"))


def test_without_a_compiler_the_library_installs_with_one_line_and_runs(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "/nowhere/cc")
    monkeypatch.setenv("CXX", "/nowhere/c++")
    shutil.copytree(checkout, tmp_path / "checkout", ignore=shutil.ignore_patterns("build", "*.egg-info", "*.so.1"))
    wheel = build_wheel(tmp_path / "checkout", tmp_path / "wheel")
    assert not [name for name in files_of(wheel) if name.endswith(".so.1")]
    code = "import torch; from sparselib.kernels import block_sparse_entmax_attention as attend; q = torch.ones(1, 1, 4, 16)"
    done = run(environment_of(wheel, tmp_path / "environment", "torch"), f"{code}; print(attend(q, q, q).sum().item())")
    assert done.stdout.split() == ["64.0"], done.stderr


def test_editors_find_every_public_name_with_its_docstring(library, tmp_path):
    """Without running the library: VS Code and others read its files, and found nothing in `sparselib.kernels`."""
    with ZipFile(library) as wheel:
        wheel.extractall(tmp_path)
    project = jedi.Project(tmp_path, added_sys_path=[str(tmp_path)], smart_sys_path=False)
    for package in [*ALONE, *OTHERS]:
        for name in import_module(package).__all__:
            path = f"{package}.{name}"
            script = jedi.Script(f"import {package}\n{path}", path=tmp_path / "editor.py", project=project)
            (place,) = script.goto(2, len(path), follow_imports=True)
            assert place.module_path.is_relative_to(tmp_path / "sparselib"), path
            assert any(value.docstring() for value in script.infer(2, len(path))), path


def test_the_replications_wheel_holds_the_replication(checkout, tmp_path):
    suffixes = (".csv", ".mplstyle", ".html", ".css", ".js")
    data = {path for path in (checkout / "replication").rglob("*") if path.suffix in suffixes}
    expected = sources("replication", "replication") | {str(path.relative_to(checkout)) for path in data}
    assert files_of(build_wheel(checkout / "replication", tmp_path)) == expected


def test_all_packages_of_the_replication_are_installed():
    listed = tomllib.loads((ROOT / "replication" / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {name for name in find_namespace_packages(ROOT, include=["replication*"]) if "__pycache__" not in name}
    assert listed == sorted(found)


@pytest.mark.parametrize("module", ["kernels", "numpy", "replication", "transformers"])
def test_nothing_else_can_be_imported_beside_the_library_and_torch(beside_torch, module):
    failed = run(beside_torch, f"import {module}")
    assert f"No module named '{module}'" in failed.stderr


def test_readmes_snippets_run_beside_torch(beside_torch, tmp_path):
    torch_alone = [snippet for snippet in snippets() if not snippet.needs]
    done = run(beside_torch, "\n".join(snippet.source for snippet in torch_alone), tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_there_beside_torch(beside_torch):
    """Of each package in a fork of its own, which has torch and nothing of the library."""
    code = f"""
import os, sys, torch
from importlib import import_module
for package in {ALONE}:
    if os.fork() == 0:
        assert not [name for name in sys.modules if name.startswith("sparselib")]
        package = import_module(package)
        print(package.__name__, *[getattr(package, name) for name in package.__all__], flush=True)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(1)  # the fork has said why
"""
    done = run(beside_torch, code)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ALONE


def run(python: Path, code: str, folder: Path | None = None) -> subprocess.CompletedProcess:
    """Isolated: neither the folder nor any variable of the environment adds to what can be imported."""
    return subprocess.run([str(python), "-I", "-c", code], cwd=folder, capture_output=True, text=True)
