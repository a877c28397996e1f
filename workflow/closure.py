"""Code that a stage's results depend on: its function, and every file that the function imports.

Imports are read from the source: those at the top of a module, those inside its functions, and those of its parent packages.
Imports for type checkers are ignored. ``python -m workflow.closure <command>`` prints the hash of a command's code.

Several stages share a module. A stage's own code is therefore its function, with the functions and constants of the module that
it uses. Rules pass the hash of all this as one parameter. Modules that only define settings and paths are ignored, because
rules pass settings as parameters and declare files.
"""

import ast
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

from replication.predictors.own_predictors import is_own, own_file
from replication.predictors.predictor_files import predictor_modules
from replication.stages import MODULE_OF

ROOT = Path(__file__).parents[1]
PACKAGES = ("replication", "sparselib")
#: Modules of settings and paths, which rules pass as parameters and declare as files.
CHOOSING = (
    "replication.config",
    "replication.predictors.own_predictors",
    "replication.run",
    "replication.schema",
    "replication.stages",
    "replication.steps",
)
#: Lock file with the versions of all other packages.
LOCK = "requirements.lock"
#: Sources of compiled libraries, by the module that loads them.
COMPILED = {
    "sparselib.kernels.support_library": [
        str(path.relative_to(ROOT)) for path in sorted((ROOT / "kernels").glob("support*.[ch]*"))
    ]
}
#: Modules imported by path instead of by name: fairseq's user folder.
BY_PATH = {
    "replication.translation.fairseq.commands": ["replication.translation.fairseq.user_dir.sparselib_fairseq"],
}


def closure(command: str, predictors: Iterable[str] = ()) -> list[str]:
    """Return the files that ``replicate <command>`` depends on, as paths from the root of the repository.

    Parameters
    ----------
    command : str
        The command; its words may be joined by underscores.
    predictors : iterable of str
        Predictors that it finds by their names in the configuration.
    """
    found = [predictor_modules()[name] for name in predictors if name in predictor_modules()]
    own = sorted({str(path) for name in predictors if is_own(name) and (path := own_file(name))})
    return [*files([*imported(ast.Module(_used_by(command), []), "replication.stages"), *found]), *own]


def function_hash(command: str) -> str:
    """Return the hash of a stage's function and the parts of its module that it uses."""
    source = "\n".join(ast.unparse(node) for node in _used_by(command))
    return hashlib.sha256(source.encode()).hexdigest()[:16]


@cache
def closure_hash(command: str, predictors: tuple[str, ...] = ()) -> str:
    """Return the hash of everything that ``replicate <command>`` depends on."""
    return _hash(function_hash(command), closure(command, predictors))


@cache
def notebook_hash(path: str) -> str:
    """Return the hash of a notebook and everything that its code depends on."""
    return _hash(path, [path, *notebook_closure(path)])


def _hash(start: str, paths: Iterable[str]) -> str:
    digest = hashlib.sha256(start.encode())
    for path in paths:
        digest.update(path.encode() + (ROOT / path).read_bytes())
    return digest.hexdigest()[:16]


def _used_by(command: str) -> list[ast.stmt]:
    """Return the statements of a stage's module that its function needs, including its own, in source order."""
    function = command.replace("-", "_")
    module, defined = parsed(Path("replication/stages", f"{MODULE_OF[function]}.py")), {}
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            defined[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            defined |= {target.id: statement for target in statement.targets if isinstance(target, ast.Name)}
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            defined |= {name.asname or name.name: statement for name in statement.names}
    needed, waiting = set(), [function]
    while waiting:
        name = waiting.pop()
        if name in defined and name not in needed:
            needed.add(name)
            waiting += [node.id for node in ast.walk(defined[name]) if isinstance(node, ast.Name)]
    kept = {id(defined[name]) for name in needed}
    return [statement for statement in module.body if id(statement) in kept]


def notebook_closure(path: str) -> list[str]:
    """Return the files that a notebook's code cells depend on, as paths from the root of the repository."""
    cells = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return files(name for cell in code for name in imported(ast.parse(cell)))


def files(names: Iterable[str]) -> list[str]:
    """Return the lock file, and the files of all modules imported directly or indirectly by these."""
    reached, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached and name.split(".")[0] in PACKAGES and not _is_setting(name):
            reached.add(name)
            waiting += [name.rpartition(".")[0], *imported_by(name)]
    sources = [source for name in sorted(reached) for source in COMPILED.get(name, ())]
    return [LOCK, *sorted([*(str(path) for path in map(file_of, reached) if path), *sources])]


def _is_setting(name: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in CHOOSING)


@cache
def file_of(name: str) -> Path | None:
    """Return a module's path from the root, or None if there is no such module or it is a folder without ``__init__.py``."""
    path = Path(*name.split("."))
    if path.parts[:2] == ("sparselib", "kernels") and len(path.parts) > 2:
        path = Path(*path.parts[1:])  # The submodules of sparselib/kernels.py lie in the folder kernels/.
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if (ROOT / file).exists()), None)


@cache
def imported_by(name: str) -> list[str]:
    """Return the full names that a module imports; some are functions and classes."""
    path = file_of(name)
    if path is None:
        package, _, attribute = name.rpartition(".")
        return [f"{package}.{module}" for module in on_demand(package).get(attribute, ())]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return [*imported(parsed(path), package), *BY_PATH.get(name, [])]


@cache
def on_demand(package: str) -> dict[str, tuple[str]]:
    """Return the modules behind each lazily imported name of a package, from its ``_MODULES``."""
    path = file_of(package)
    for statement in parsed(path).body if path else ():
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "_MODULES":
            return {name: (module or name,) for name, module in ast.literal_eval(statement.value).items()}
    return {}


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file, given by its path from the root."""
    return ast.parse((ROOT / path).read_bytes())


def imported(node: ast.AST, package: str = "") -> Iterator[str]:
    """Yield the full names that a piece of code in ``package`` imports."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (name.name for name in child.names)
        elif isinstance(child, ast.ImportFrom):
            module = resolve_name("." * child.level + (child.module or ""), package)
            yield from (f"{module}.{name.name}" for name in child.names)
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):  # expressions contain no imports
            yield from imported(child, package)


if __name__ == "__main__":
    print(closure_hash(sys.argv[1]))
