"""Files of this repository that a fresh process reads when it runs some code, and then all imports inside functions.

A JSON list for each piece of code among the arguments. Each runs in a fork that has not read any of these files; what is
slow to import, and reads none of them, all forks have from before.
"""

import ast
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: From elsewhere, and slow.
HEAVY = (
    "torch",
    "pandas",
    "transformers.trainer",
    "scipy.stats",
    "sklearn.cluster",
    "sacrebleu",
    "hydra.core.config_store",
)
PACKAGES = [str(ROOT / package) for package in ("kernels", "replication", "sparselib")]


def own_modules() -> dict[Path, object]:
    modules = {getattr(module, "__file__", None) or "": module for module in [*sys.modules.values()]}
    return {Path(file): module for file, module in modules.items() if file.startswith(tuple(PACKAGES))}


def run_imports(path: Path, package: str) -> None:
    functions = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))
    for node in (node for function in functions for node in ast.walk(function)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            try:
                exec(compile(ast.Module([node], []), str(path), "exec"), {"__package__": package})
            except ImportError as error:  # what is not pinned
                print(error, file=sys.stderr)


def give_fairseq_its_folder() -> None:
    if commands := sys.modules.get("replication.translation.fairseq.commands"):
        from argparse import Namespace

        from fairseq.utils import import_user_module

        import_user_module(Namespace(user_dir=str(commands.USER_DIR)))


def read_by(code: str) -> list[str]:
    exec(code)
    done = set()
    while waiting := own_modules().keys() - done:
        for path in waiting:
            run_imports(path, own_modules()[path].__package__)
        done |= waiting
        give_fairseq_its_folder()
    return sorted(str(path.relative_to(ROOT)) for path in own_modules())


def print_apart(code: str) -> None:
    child = os.fork()
    if child == 0:
        print(json.dumps(read_by(code)), flush=True)
        os._exit(0)  # a fork that failed ends with its traceback, and as this process does
    if os.waitpid(child, 0)[1]:
        sys.exit(1)


if __name__ == "__main__":
    for name in HEAVY:
        try:
            __import__(name)
        except ImportError as error:  # what is not pinned
            print(error, file=sys.stderr)
    assert not own_modules()
    for code in sys.argv[1:]:
        print_apart(code)
