"""Files of this repository that a fresh process reads when it runs some code, and then all imports inside functions."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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
    if commands := sys.modules.get("sparselib.integrations.fairseq.commands"):
        from argparse import Namespace

        from fairseq.utils import import_user_module

        import_user_module(Namespace(user_dir=str(commands.USER_DIR)))


if __name__ == "__main__":
    exec(sys.argv[1])
    done = set()
    while waiting := own_modules().keys() - done:
        for path in waiting:
            run_imports(path, own_modules()[path].__package__)
        done |= waiting
        give_fairseq_its_folder()
    print(*sorted(path.relative_to(ROOT) for path in own_modules()), sep="\n")
