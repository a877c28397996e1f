"""The folder kernels/ is sparselib.kernels, and never the package `kernels` of Hugging Face."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from setuptools import find_namespace_packages

import sparselib.kernels
from replication.files.paths import ROOT


def run(code: str, folder: Path, *path: Path) -> str:
    environment = {"PYTHONPATH": ":".join(map(str, path))}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_our_files_are_sparselibs():
    assert sparselib.kernels.block_sparse_entmax_attention.__module__ == "sparselib.kernels.attention"
    assert Path(sparselib.kernels.attention.__file__).is_relative_to(ROOT / "kernels")


def test_no_regular_package_from_the_root():
    assert not (ROOT / "kernels" / "__init__.py").exists()
    code = "import importlib.util as u; spec = u.find_spec('kernels'); print(spec.origin if spec else None)"
    origin = run(code, ROOT)
    assert origin == "None" or not Path(origin).is_relative_to(ROOT / "kernels")


@pytest.mark.parametrize("order", [lambda other: (other, ROOT), lambda other: (ROOT, other)])
def test_hugging_faces_package_is_found_beside_ours(tmp_path, order):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "__init__.py").write_text("whose = 'theirs'")
    code = "import kernels, importlib.util as u; print(kernels.whose, u.find_spec('sparselib.kernels') is not None)"
    assert run(code, ROOT, *order(tmp_path)) == "theirs True"


def test_a_cpu_needs_no_triton():
    code = """if True:
        import sys, torch
        sys.modules["triton"] = None  # an import raises
        from sparselib.kernels import block_sparse_entmax_attention
        x = torch.ones(1, 1, 4, 2)
        print(block_sparse_entmax_attention(x, x, x).sum().item())"""
    assert run(code, ROOT, ROOT) == "8.0"


def test_all_packages_are_installed():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {name for name in find_namespace_packages(ROOT, include=["sparselib*"]) if "__pycache__" not in name}
    assert set(listed) == found | {"sparselib.kernels"}


def imported(path: Path) -> set[str]:
    """Modules that a file imports, anywhere in it; relative ones as they are written."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
    return found


def test_the_kernels_know_nothing_of_what_stands_on_them():
    imports = set().union(*map(imported, (ROOT / "kernels").glob("*.py")))
    outside = {name.partition(".")[0] for name in imports if not name.startswith(".")}
    assert not any(name.startswith("..") for name in imports)
    assert outside - sys.stdlib_module_names == {"torch", "triton"}


def test_few_modules_enter_the_kernels():
    entered = {}
    for package in ("sparselib", "replication"):
        for path in (ROOT / package).rglob("*.py"):
            for name in imported(path):
                if name.startswith("sparselib.kernels"):
                    entered.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    door = "sparselib/kernels.py"
    assert {name: files for name, files in entered.items() if files != {door}} == {
        "sparselib.kernels": {
            "sparselib/blocks/graph.py",
            "sparselib/dense_attention.py",
            "sparselib/control.py",
            "sparselib/huggingface/blocks.py",
            "replication/masked_lm/blocks.py",
            "replication/timing/contenders.py",
        },
        "sparselib.kernels.checks": {"sparselib/predictors/inputs.py"},
        "sparselib.kernels.threshold": {"sparselib/normalizer_rows.py"},
    }
