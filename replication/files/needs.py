"""Declared needs of notebooks: which stored runs each can show."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path


def code_cells(notebook: Path) -> Iterator[tuple[str, bool]]:
    """Yield the source of each code cell, and whether it is the parameters cell."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"]), "parameters" in cell["metadata"].get("tags", [])


def needs_of(notebook: Path) -> dict[str, str] | None:
    """Return the needs that a notebook passes to ``results_of``, with its default parameters.

    Returns
    -------
    dict or None
        Glob patterns by noun; None for a notebook that reads no run.
    """
    parameters: dict[str, object] = {}
    for source, are_parameters in code_cells(notebook):
        tree = ast.parse(source)
        if are_parameters:
            parameters = {node.target.id: ast.literal_eval(node.value) for node in tree.body}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "results_of":
                (needs,) = (keyword.value for keyword in node.keywords if keyword.arg == "needs")
                return eval(compile(ast.Expression(needs), notebook.name, "eval"), parameters)
    return None
