"""Every public name has an example, and all examples run."""

import doctest
import importlib
import inspect
import pkgutil

import pytest
import torch

import sparselib
from sparselib import masks

#: Whose ``__all__`` is public; what lies behind them may change. The site's reference has a page for each.
DOORS = [
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
PUBLIC = {(door, name) for door in DOORS for name in importlib.import_module(door).__all__}
MODULES = [module.name for module in pkgutil.walk_packages(sparselib.__path__, "sparselib.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"masks": masks, "torch": torch}).failed == 0


@pytest.mark.parametrize(("door", "name"), sorted(PUBLIC))
def test_what_is_public_has_a_docstring_with_an_example(door, name):
    public = getattr(importlib.import_module(door), name)
    if inspect.isclass(public) or inspect.isfunction(public):
        assert ">>> " in inspect.getdoc(public)
