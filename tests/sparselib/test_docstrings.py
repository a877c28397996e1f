"""Public names have signatures and numpydoc docstrings, and all examples run."""

import ast
import doctest
import importlib
import inspect
import itertools
import pkgutil
import textwrap
from types import FunctionType

import pytest
import torch

import sparselib
from sparselib import masks

#: Modules whose ``__all__`` is public. The site's reference has a page for each.
PUBLIC_MODULES = [
    "sparselib",
    "sparselib.blocks",
    "sparselib.dense_attention",
    "sparselib.control",
    "sparselib.forms",
    "sparselib.graphs",
    "sparselib.huggingface",
    "sparselib.kernels",
    "sparselib.masks",
    "sparselib.metrics",
    "sparselib.normalizers",
    "sparselib.predictors",
    "sparselib.projections",
]
MODULES = [module.name for module in pkgutil.walk_packages(sparselib.__path__, "sparselib.")]


PUBLIC = {
    f"{module}.{name}": value
    for module in PUBLIC_MODULES
    for name in importlib.import_module(module).__all__
    if inspect.isclass(value := getattr(importlib.import_module(module), name)) or inspect.isfunction(value)
}
METHODS = {
    f"{path}.{name}": getattr(owner, name)
    for path, owner in PUBLIC.items()
    if inspect.isclass(owner)
    for name, value in vars(owner).items()
    if name[0] != "_" and isinstance(value, FunctionType | classmethod)
}


def sections(value: object) -> set[str]:
    """Return the section headings of a docstring."""
    lines = inspect.getdoc(value).splitlines()
    return {title for title, line in itertools.pairwise(lines) if title and line == "-" * len(title)}


def raises(value: object) -> bool:
    """Return whether the body, or a dataclass's ``__post_init__``, raises.

    Shared checks do not count: they refuse values outside the range that `Parameters` states.
    """
    if inspect.isclass(value):
        value = vars(value).get("__post_init__")
        if value is None:
            return False
    function = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value)))).body[0]
    return any(isinstance(node, ast.Raise) for node in ast.walk(function))


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"masks": masks, "torch": torch}).failed == 0


@pytest.mark.parametrize("path", sorted(PUBLIC))
def test_public_names_have_a_signature_and_the_sections_that_they_need(path):
    value = PUBLIC[path]
    has_parameters = inspect.signature(value).parameters and not getattr(value, "_is_protocol", False)
    found = sections(value)
    assert "Examples" in found
    assert not has_parameters or "Parameters" in found or (inspect.isclass(value) and "Attributes" in found)
    assert not raises(value) or "Raises" in found
    assert ">>> " in inspect.getdoc(value)


@pytest.mark.parametrize("path", sorted(METHODS))
def test_public_methods_have_a_docstring_that_lists_their_errors(path):
    value = METHODS[path]
    assert inspect.getdoc(value)
    assert not raises(value) or "Raises" in sections(value)


@pytest.mark.parametrize("package", ["sparselib", "sparselib.huggingface"])
def test_lazy_imports_are_the_same_for_the_interpreter_and_for_type_checkers(package):
    """``__all__``, ``_MODULES`` and the imports under ``TYPE_CHECKING`` must not drift apart."""
    module = importlib.import_module(package)
    values, imported = {}, {}
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            values[statement.targets[0].id] = statement.value
        elif isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            for node in statement.body:
                source = node.module.removeprefix(package).removeprefix(".")
                imported |= {name.asname or name.name: source or None for name in node.names}
    assert ast.literal_eval(values["_MODULES"]) == imported
    assert sorted(ast.literal_eval(values["__all__"])) == sorted(imported)
    for name in imported:
        assert getattr(module, name) is not None
