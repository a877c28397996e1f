"""Examples in docstrings run; those that stand for a model of the reader's own are left out."""

import doctest
import importlib
import pkgutil

import pytest
import torch

import sparselib
from sparselib import masks

#: Their examples begin with a model.
ILLUSTRATIONS = ("sparselib.integrations", "sparselib.blocks.graph", "sparselib.sparsify")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(sparselib.__path__, "sparselib.")
    if not module.name.startswith((*ILLUSTRATIONS, "sparselib.kernels"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"masks": masks, "torch": torch}).failed == 0


def test_there_are_examples():
    examples = [doctest.DocTestFinder().find(importlib.import_module(name)) for name in MODULES]
    assert sum(len(test.examples) for tests in examples for test in tests) > 30
