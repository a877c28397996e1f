"""Where the predictors of ``sparselib/predictors`` are defined, read from the sources, so that none is imported."""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import sparselib
from replication.predictors.own_predictors import is_own, own_class

if TYPE_CHECKING:
    from sparselib.predictors import Predictor

PACKAGE = "sparselib.predictors"


@cache
def predictor_modules() -> dict[str, str]:
    """Return the module of each predictor by the name of its class; base classes are none."""
    modules = {}
    for path in sorted((Path(sparselib.__file__).parent / "predictors").glob("[!_]*.py")):
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.ClassDef) and _is_predictor(node):
                modules[node.name] = f"{PACKAGE}.{path.stem}"
    return modules


def _is_predictor(node: ast.ClassDef) -> bool:
    """Return whether a class is a dataclass that predicts, by itself or by its base."""
    dataclass = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    predicts = any(isinstance(part, ast.FunctionDef) and part.name == "predict" for part in node.body)
    return dataclass and (predicts or bool(node.bases))


def predictor_class(name: str) -> "type[Predictor]":
    """Return the predictor of this name, from its file in ``sparselib/predictors`` or a user's; no other file is imported."""
    return own_class(name) if is_own(name) else getattr(import_module(predictor_modules()[name]), name)
