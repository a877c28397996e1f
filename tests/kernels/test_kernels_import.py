"""The folder kernels/ is imported as sparselib.kernels and never shadows Hugging Face's package `kernels`."""

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
    """Run code in a new process and return its output."""
    environment = {"PYTHONPATH": ":".join(map(str, path))}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_folder_is_sparselib_kernels():
    assert sparselib.kernels.block_sparse_entmax_attention.__module__ == "sparselib.kernels.attention"
    assert Path(sparselib.kernels.attention.__file__).is_relative_to(ROOT / "kernels")


def test_the_root_contains_no_package_named_kernels():
    assert not (ROOT / "kernels" / "__init__.py").exists()
    code = "import importlib.util as u; spec = u.find_spec('kernels'); print(spec.origin if spec else None)"
    origin = run(code, ROOT)
    assert origin == "None" or not Path(origin).is_relative_to(ROOT / "kernels")


@pytest.mark.parametrize("order", [lambda folder: (folder, ROOT), lambda folder: (ROOT, folder)])
def test_hugging_faces_package_can_be_installed_too(tmp_path, order):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "__init__.py").write_text("owner = 'Hugging Face'")
    code = "import kernels, importlib.util as u; print(kernels.owner, u.find_spec('sparselib.kernels') is not None)"
    assert run(code, ROOT, *order(tmp_path)) == "Hugging Face True"


def test_a_cpu_needs_no_triton():
    code = """if True:
        import sys, torch
        sys.modules["triton"] = None  # makes imports of triton fail
        from sparselib.kernels import block_sparse_entmax_attention
        x = torch.ones(1, 1, 4, 2)
        print(block_sparse_entmax_attention(x, x, x).sum().item())"""
    assert run(code, ROOT, ROOT) == "8.0"


def test_all_packages_are_installed():
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {name for name in find_namespace_packages(ROOT, include=["sparselib*"]) if "__pycache__" not in name}
    assert set(packages) == folders | {"sparselib.kernels"}


def imported(path: Path) -> set[str]:
    """Return the modules that a file imports anywhere; relative imports keep their dots."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return names


def test_the_kernels_import_only_torch_and_triton():
    imports = set().union(*map(imported, (ROOT / "kernels").glob("*.py")))
    outside = {name.partition(".")[0] for name in imports if not name.startswith(".")}
    assert not any(name.startswith("..") for name in imports)
    assert outside - sys.stdlib_module_names == {"torch", "triton"}


def test_few_modules_import_the_kernels():
    importers = {}
    for package in ("sparselib", "replication"):
        for path in (ROOT / package).rglob("*.py"):
            for name in imported(path):
                if name.startswith("sparselib.kernels"):
                    importers.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    public = "sparselib/kernels.py"
    assert {name: files for name, files in importers.items() if files != {public}} == {
        "sparselib.kernels": {
            "sparselib/blocks/graph.py",
            "sparselib/dense_attention.py",
            "sparselib/control/calls.py",
            "sparselib/control/block_attention.py",
            "sparselib/huggingface/blocks.py",
            "replication/masked_lm/blocks.py",
            "replication/timing/contenders.py",
        },
        "sparselib.kernels.block_operator": {"sparselib/exact_output.py"},
        "sparselib.kernels.checks": {"sparselib/exact_output.py", "sparselib/predictors/inputs.py"},
        "sparselib.kernels.registration": {"sparselib/normalizer_gradients.py"},
        "sparselib.kernels.support_library": {"sparselib/exact_output.py"},
        "sparselib.kernels.tracing": {
            "sparselib/dense_attention.py",
            "sparselib/exact_output.py",
            "sparselib/normalizer_gradients.py",
        },
        "sparselib.kernels.threshold": {"sparselib/exact_output.py", "sparselib/normalizer_rows.py"},
    }
