"""Predictors of the user, named by a file or module and a class, such as ``landmarks.py:Landmarks``.

The file is imported when a profile is read in order to run it, and by the stages that compute with it. Reading a stored run or
an archive imports nothing.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import get_type_hints

#: Fields of a predictor that the workflow fills in, where its needs say so.
FILLED = ("centroids", "seed")


def is_own(name: str) -> bool:
    """Return whether a predictor's name in a profile names a file or module, too."""
    return ":" in name


def own_file(name: str) -> Path | None:
    """Return the file of an own predictor, or None if there is none."""
    where = name.rpartition(":")[0]
    if where.endswith(".py"):
        return Path(where) if Path(where).is_file() else None
    try:
        spec = find_spec(where)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec and spec.has_location else None


def own_names(settings: object) -> Iterator[str]:
    """Yield the names of own predictors in the settings of a profile."""
    if isinstance(settings, Mapping):
        if isinstance(name := settings.get("predictor"), str) and is_own(name):
            yield name
        for value in settings.values():
            yield from own_names(value)


def stored_name(name: str) -> str:
    """Return the name under which a run keeps a copy of an own predictor's file.

    >>> stored_name("landmarks.py:Landmarks"), stored_name("../ideas/landmarks.py:Landmarks")
    ('landmarks.py', 'ideas_landmarks.py')
    """
    return re.sub(r"[^\w.-]+", "_", name.rpartition(":")[0]).strip("._").removesuffix(".py") + ".py"


def own_class(name: str) -> type:
    """Return the class of an own predictor.

    Raises
    ------
    ImportError
        If its file does not exist or has no such class.
    """
    where, _, class_name = name.rpartition(":")
    path = own_file(name)
    if path is None:
        raise ImportError(f"{where}: no such file or module, which predictor {name} names")
    module = _imported(path.absolute()) if where.endswith(".py") else import_module(where)
    if not hasattr(module, class_name):
        raise ImportError(f"{path}: has no class {class_name}, which predictor {name} names")
    return getattr(module, class_name)


@cache
def _imported(path: Path) -> ModuleType:
    """Import a file of Python under a name that no module has; dataclasses look their module up."""
    spec = spec_from_file_location(f"own predictors of {path}", path)
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unfit_arguments(name: str, given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the keys of a profile that an own predictor does not take, and those that it lacks, each with a sentence."""
    try:
        predictor = own_class(name)
    except Exception as error:  # The user's file may fail in any way while it is imported.
        yield (
            "predictor",
            f"must be a file and a class that can be imported, got {name}: {type(error).__name__}: {error}",
        )
        return
    if not (is_dataclass(predictor) and hasattr(predictor, "needs") and callable(getattr(predictor, "predict", None))):
        yield (
            "predictor",
            f"must be a dataclass with `needs` and `predict`, as a sparselib.predictors.Predictor, got {name}",
        )
        return
    required = _arguments(predictor)
    types = get_type_hints(predictor.fit if fits(predictor) else predictor) | {"clusters": int}
    for key in given.keys() - required.keys():
        yield key, f"unknown key; {name} takes {', '.join(required) or 'no arguments'}"
    for key in required:
        kind = types.get(key)
        if key not in given and required[key]:
            yield key, f"missing key, which {name} takes"
        for value in given[key] if isinstance(given.get(key), list) else [given[key]] if key in given else []:
            allowed = (int, float) if kind is float else kind
            if kind in (int, float, str, bool) and not isinstance(value, allowed):
                yield key, f"must be of type {kind.__name__}, as in {name}, got {value!r}"


def fits(predictor: type) -> bool:
    """Return whether a predictor's class method ``fit(batches, projection, seed, **arguments)`` makes it from gold graphs."""
    return callable(getattr(predictor, "fit", None))


def _arguments(predictor: type) -> dict[str, bool]:
    """Return the keys that a profile gives an own predictor, and whether it has to."""
    if fits(predictor):
        parameters = [*signature(predictor.fit).parameters.values()][3:]
        return {parameter.name: parameter.default is parameter.empty for parameter in parameters}
    own = [field for field in fields(predictor) if field.init and field.name not in FILLED]
    required = {field.name: field.default is field.default_factory is MISSING for field in own}
    return required | ({"clusters": True} if predictor.needs.centroids else {})
