"""The library needs torch alone: nothing else is imported with it, however much of it is."""

import pytest
from fresh_process import modules_after

import sparselib

FOREIGN = {"datasets", "entmax", "fairseq", "matplotlib", "pandas", "safetensors", "scipy", "sklearn", "transformers"}

EVERY_MODULE = """
from importlib import import_module
from pkgutil import iter_modules
import sparselib

def visit(module):
    for found in iter_modules(getattr(module, "__path__", []), f"{module.__name__}."):
        if found.name != "sparselib.huggingface" and ".triton_" not in found.name:
            visit(import_module(found.name))

visit(sparselib)
"""


def test_the_library_imports_torch_and_nothing_else():
    after, torch_alone = modules_after(EVERY_MODULE), modules_after("import torch")
    assert {"sparselib.kernels.attention", "sparselib.predictors.routing", "sparselib.forms.budgeted"} <= after
    assert {name.partition(".")[0] for name in after} & FOREIGN == set()
    assert "numpy" not in after - torch_alone


def test_comparing_fronts_waits_for_nothing():
    assert modules_after("from sparselib import pareto_front") & {"numpy", "torch"} == set()


def test_a_report_is_read_without_transformers():
    """In a notebook, its import warns about progress bars."""
    assert "transformers" not in modules_after("from sparselib.huggingface import read_report")


@pytest.mark.parametrize("name", sparselib.__all__)
def test_every_announced_name_is_there(name):
    assert getattr(sparselib, name) is not None
