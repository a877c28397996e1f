"""Seed faults in the code, one at a time, and list the tests that find them.

    python tests/faults.py 60 faults.csv

A fault changes one operator or number of a random function. It is found if a test fails, or does not end, among the tests that
name the function's module or a package that exports it. Each fault is tried in a copy of the repository's tracked files, unless
the table has its row from an earlier run.
"""

import ast
import csv
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Parts of the faults.
PACKAGES = {"sparselib": 0.3, "kernels": 0.2, "replication": 0.4, "workflow": 0.1}
SWAPS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in",
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.BitAnd: "|", ast.BitOr: "&", ast.And: "or", ast.Or: "and",
}  # fmt: skip
SECONDS = 900


def faults(source: str) -> list[tuple[int, int, str]]:
    """Return the start, the end and the new text of each fault that functions of a source can have."""
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def span(node: ast.AST) -> tuple[int, int]:
        return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset

    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        # Words of errors are not laws, and a type is not evaluated.
        skipped = {id(part) for node in ast.walk(function) for part in _without_law(node)}
        for node in ast.walk(ast.Module(function.body, [])):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
                found.append((span(node.left)[1], span(node.comparators[0])[0], f" {SWAPS[type(node.ops[0])]} "))
            elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS and not _joins_words(node):
                found.append((span(node.left)[1], span(node.right)[0], f" {SWAPS[type(node.op)]} "))
            elif isinstance(node, ast.BoolOp):
                found.append((span(node.values[0])[1], span(node.values[1])[0], f" {SWAPS[type(node.op)]} "))
            elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
                new = not node.value if isinstance(node.value, bool) else node.value + 1
                found.append((*span(node), repr(new)))
    # A bracket between two operands would be lost.
    data = source.encode()
    return sorted({one for one in found if not {*b"()"} & {*data[one[0] : one[1]]}})


def _without_law(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        return list(ast.walk(node))
    if isinstance(node, ast.AnnAssign):
        return list(ast.walk(node.annotation))
    if isinstance(node, ast.FunctionDef):
        return [part for note in (node.args, node.returns) if note for part in ast.walk(note)]
    if isinstance(node, ast.keyword):
        return [node.value] if node.arg == "strict" else []
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
        return list(ast.walk(node.args[1]))
    return []


def _joins_words(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", 0), str)
        for side in (node.left, node.right)
    )


def tests_of(module: Path) -> list[str]:
    """Return the test files that name a module or a package that exports it, those named after the module first."""
    dotted = ".".join(module.with_suffix("").parts).removesuffix(".__init__")
    stem, package = dotted.rpartition(".")[2], dotted.rpartition(".")[0]
    exporting = [
        dotted,
        *([package] if package not in PACKAGES else []),
        *(["sparselib.kernels"] if package == "kernels" else []),
    ]
    names = "|".join(re.escape(name) for name in exporting)
    imports = (
        rf"(from|import) ({names})\b|(from {re.escape(package)} import [^\n]*|workflow/scripts/|workflow )\b{stem}\b"
    )
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    named = [file for file in files if file.stem == f"test_{stem}"]
    others = [file for file in files if file not in named and re.search(imports, file.read_text())]
    others.sort(key=lambda file: len(os.path.relpath(file, ROOT / "tests" / module.parent).split("/")))
    found = [file for file in [*named, *others] if "made" not in file.parts and file.stem != "test_kills"]
    return [str(file.relative_to(ROOT)) for file in found[:12]]


def found_by(tree: Path, tests: list[str]) -> str:
    """Return the first failing test in a tree; empty if all pass."""
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "no end"
    if done.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)
    return failed[1] if failed else (done.stderr.strip() or done.stdout.strip()).splitlines()[-1]


def main(count: int, table: Path) -> None:
    drawn = random.Random(0)
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    known = {row["fault"]: row for row in csv.DictReader(table.open(newline=""))} if table.exists() else {}
    with tempfile.TemporaryDirectory() as folder, table.open("w", newline="") as file:
        tree = Path(folder) / "tree"
        for name in [
            *tracked.strip("\0").split("\0"),
            *(str(one.relative_to(ROOT)) for one in ROOT.glob("kernels/*.so*")),
        ]:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
        (tree / ".venv").symlink_to(ROOT / ".venv")
        rows = csv.DictWriter(file, ["fault", "found by"])
        rows.writeheader()
        drawn_modules = []
        for package, part in PACKAGES.items():
            modules = [path for path in sorted((ROOT / package).rglob("*.py")) if faults(path.read_text())]
            modules = [path for path in modules if tests_of(path.relative_to(ROOT))]
            drawn_modules += drawn.sample(modules, round(part * count))
        for path in drawn_modules:
            data, module = path.read_bytes(), path.relative_to(ROOT)
            start, end, new = drawn.choice(faults(data.decode()))
            line = data[:start].count(b"\n")
            faulty = data[:start] + new.encode() + data[end:]
            (tree / module).write_bytes(faulty)
            words = f"{module}:{line + 1}: {faulty.splitlines()[line].decode().strip()}"
            rows.writerow(known.get(words) or {"fault": words, "found by": found_by(tree, tests_of(module))})
            file.flush()
            (tree / module).write_bytes(data)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
