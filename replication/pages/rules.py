"""Code of a claim's rule, and the rule's changes."""

import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from replication.claims import TESTS
from replication.claims.finding import Test
from replication.files.paths import ROOT

#: Page with the changes of rules, and where it begins to list them.
CHANGES = ROOT / "docs" / "rule-changes.md"


def functions_of(claim: str) -> list[Callable]:
    """Return the functions that test a claim: those that wrappers and partial functions hold before their helpers."""
    return list(dict.fromkeys(_within(TESTS[claim])))


def _within(test: Test) -> Iterator[Callable]:
    """Yield the functions of this package that a test consists of; functions that only wrap tests are left out."""
    if isinstance(test, partial):
        for held in (test.func, *test.args, *test.keywords.values()):
            yield from _within(held) if callable(held) else ()
    elif inspect.isfunction(test) and test.__module__.startswith("replication."):
        held = [cell.cell_contents for cell in test.__closure__ or () if callable(cell.cell_contents)]
        if test.__name__ != "tested" or not held:
            yield test
        for other in held:
            yield from _within(other)


def arguments_of(claim: str) -> list[str]:
    """Return the arguments other than functions that a claim's test gets, as code."""
    test = TESTS[claim]
    return [repr(value) for value in test.args if not callable(value)] if isinstance(test, partial) else []


def changes_of(claim: str) -> list[list[str]]:
    """Return the cells of each row of ``docs/rule-changes.md`` that names a claim, or a group of claims that it is in."""
    rows = []
    for line in CHANGES.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| 2") else []
        patterns = re.findall(r"`([\w*-]+)`", cells[1]) if len(cells) > 2 else []
        if any(re.fullmatch(pattern.replace("*", ".*"), claim) for pattern in patterns):
            rows.append(cells)
    return rows


def place_of(function: Callable) -> tuple[Path, int]:
    """Return a function's file below the root, and its first line."""
    return Path(inspect.getsourcefile(function)).relative_to(ROOT), inspect.getsourcelines(function)[1]
