"""How much is tried on the way to a trusted result: counts from the tests that try it."""

import ast
import re

from replication.paths import ROOT
from replication.tables.markers import markdown

#: What is counted: the file, the variable of the environment with its number in CI, and the target that asks for more.
TRIED = {
    "runs killed, whole or in part, at random moments": ("tests/workflow/test_kills.py", "KILLS", "test-kills"),
    "artefacts changed, swapped or cut, each refused by name": (
        "tests/replication/test_mutations.py",
        "MUTATIONS",
        None,
    ),
    "rows of certificates, random and adversarial, none wrong": (
        *("tests/kernels/test_certificates_many.py", "ROWS"),
        "test-certificates",
    ),
}
#: Files whose cases are malformed inputs and configurations.
MALFORMED = (
    "tests/workflow/test_checks.py",
    "tests/workflow/test_config.py",
    "tests/replication/test_stages.py",
    "tests/replication/test_harsh_circumstances.py",
)
#: What a test says that expects an error.
ERROR = r"raises|assert_one_line|problem|(exit_code|returncode) == 1"


def reliability() -> str:
    """A row for each thing that is tried: how often in CI, and how often by a target of its own."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rows = []
    for what, (path, variable, target) in TRIED.items():
        (default,) = re.findall(rf'environ\.get\("{variable}", "(\d+)"\)', (ROOT / path).read_text(encoding="utf-8"))
        more = re.findall(rf"^\t{variable}=(\d+) ", makefile, re.MULTILINE)
        rows.append([what, f"{int(default):,}", f"{int(more[0]):,} (`make {target}`)" if target else ""])
    rows.append(["malformed inputs and configurations, each named in one line", f"{malformed():,}", ""])
    return markdown(["tried", "in CI", "and more"], rows)


def malformed() -> int:
    """Cases of parametrised tests that expect an error, counted in their source."""
    count = 0
    for path in MALFORMED:
        module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        named = {ast.unparse(one.targets[0]): one.value for one in module.body if isinstance(one, ast.Assign)}
        for function in module.body:
            expects = isinstance(function, ast.FunctionDef) and function.name.startswith("test_")
            if expects and re.search(ERROR, ast.unparse(function)):
                count += _cases(function, named)
    return count


def _cases(function: ast.FunctionDef, named: dict[str, ast.expr]) -> int:
    """How many cases a test's decorators list, as far as they are written out; one without."""
    cases = 1
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.parametrize":
            values = named.get(ast.unparse(decorator.args[1]), decorator.args[1])
            listed = getattr(values, "elts", getattr(values, "keys", None))
            cases *= len(listed) if isinstance(listed, list) else 1
    return cases
