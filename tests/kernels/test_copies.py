"""Several copies of the kernels in one process under different names, as Hugging Face's `kernels` loads them."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from interpreter import require_interpreter

from replication.files.paths import ROOT
from sparselib import kernels

#: The `_ops.py` that kernel-builder writes into a build; the real name also includes the backend.
OPS = """import torch
ops = torch.ops.{name}
def add_op_namespace_prefix(op_name: str) -> str:
    return f"{name}::{{op_name}}"
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """Assemble the folder that kernel-builder would build."""
    folder = tmp_path_factory.mktemp("hub")
    subprocess.run([sys.executable, str(ROOT / "hub" / "assemble.py"), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def copies(source, tmp_path_factory) -> list[ModuleType]:
    """Load a build with kernel-builder's namespace, and a plain copy of the folder kernels/."""
    packages = []
    for name in ("_built_1f0c", "vendored"):
        folder = tmp_path_factory.mktemp(name) / "package"
        shutil.copytree(source / "torch-ext" / "block_sparse_entmax", folder)
        if name.startswith("_built"):
            (folder / "_ops.py").write_text(OPS.format(name=name))
        else:
            shutil.copy(ROOT / "kernels" / "_ops.py", folder)
        packages.append(import_folder(name, folder))
    return packages


def import_folder(name: str, folder: Path) -> ModuleType:
    """Import the package in a folder under a name; like its operators, it stays for the rest of the process."""
    specification = importlib.util.spec_from_file_location(name, folder / "__init__.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def results(package: ModuleType, backend: str, compiler: str | None = None) -> list[torch.Tensor]:
    """Return the output and the gradients of q, k and v."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(1, 2, 40, 16, generator=generator).requires_grad_() for _ in range(3)]
    near = torch.eye(3, dtype=torch.bool).expand(1, 1, 3, 3)
    mask = package.BlockMask.from_dense(near, 16, 40)

    def function(*inputs):
        return package.block_sparse_entmax_attention(*inputs, mask, causal=True, backend=backend)

    if compiler is not None:
        torch.compiler.reset()  # The compiler gives up after a few recompilations of one function.
        function = torch.compile(function, fullgraph=True, backend=compiler)
    output = function(*inputs)
    return [output.detach(), *torch.autograd.grad(output.square().sum(), inputs)]


@pytest.mark.parametrize("compiler", [None, "eager", "aot_eager"])
@pytest.mark.parametrize("backend", ["gather", "triton"])
def test_copies_run_beside_each_other(copies, backend, compiler):
    require_interpreter(backend)
    expected = results(kernels, backend)
    for package in copies:
        assert package.BlockMask is not kernels.BlockMask
        for actual, original in zip(results(package, backend, compiler), expected, strict=True):
            assert torch.equal(actual, original)


def test_each_copy_has_its_own_operators(copies):
    operators = [sys.modules[f"{package.__name__}.block_operator"]._operator for package in (kernels, *copies)]
    namespaces = [operator.namespace for operator in operators]
    assert namespaces == ["sparselib_kernels", "_built_1f0c", "vendored"]


def test_all_imports_are_relative(copies):
    for package in copies:
        modules = [x for name, x in sys.modules.items() if name.startswith(f"{package.__name__}.")]
        assert len(modules) >= 10
        folder = Path(package.__file__).parent
        for module in (package, *modules):
            for value in vars(module).values():
                origin = getattr(value, "__module__", None) or ""
                assert not str(origin).startswith("sparselib"), (module.__name__, value)
            assert Path(module.__file__).parent == folder


def test_hugging_faces_loader_loads_copies(source, tmp_path):
    loader = pytest.importorskip("kernels.load", reason="Hugging Face's package `kernels` is not installed")
    loaded = []
    for unique in ("0a1b2c3", "4d5e6f7"):
        name = f"_block_sparse_entmax_cpu_{unique}"
        build = tmp_path / unique / "build" / "torch-cpu"
        shutil.copytree(source / "torch-ext" / "block_sparse_entmax", build)
        (build / "_ops.py").write_text(OPS.format(name=name))
        metadata = {
            "name": "block-sparse-entmax",
            "id": name,
            "version": 1,
            "license": "MIT",
            "python-depends": [],
            "backend": {"type": "cpu"},
        }
        (build / "metadata.json").write_text(json.dumps(metadata))
        loaded.append(loader.get_local_kernel(tmp_path / unique, backend="cpu"))
        assert loaded[-1].__name__ == name
    expected = results(kernels, "gather")
    for package in loaded:
        assert all(torch.equal(x, y) for x, y in zip(results(package, "gather", "aot_eager"), expected, strict=True))


def test_hugging_faces_package_accepts_the_configuration(source):
    rust = pytest.importorskip("kernels._rust", reason="Hugging Face's package `kernels` is not installed")
    backends = rust.Build.open(source).general.backends
    assert {str(x).lower() for x in backends} == {"cpu", "cuda"}


def test_a_folder_that_is_not_empty_is_rejected(source):
    run = subprocess.run(
        [sys.executable, str(ROOT / "hub" / "assemble.py"), str(source)], capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "not empty" in run.stderr
