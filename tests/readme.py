"""The Python of README and of the library's page: snippets, what each of them needs, and which names it never defines."""

import ast
import builtins
from dataclasses import dataclass, field

from replication.files.paths import ROOT

#: What a module needs that is installed beside torch.
NEEDS = {
    "transformers": "transformers",
    "sparselib.huggingface": "transformers",
    "replication": "replication",
    "replication.translation": "fairseq",
}


@dataclass(frozen=True)
class Snippet:
    """A block of code; ``needs`` and ``undefined`` take into account what the snippets before it define."""

    source: str
    needs: set[str] = field(default_factory=set)
    undefined: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return self.source.strip().splitlines()[0]


def texts() -> str:
    return "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/library.md"))


def snippets() -> list[Snippet]:
    """The snippets in order: one may use what an earlier one defined, and then needs all that the earlier one needs."""
    found: list[Snippet] = []
    needs_of_name: dict[str, set[str]] = {name: set() for name in dir(builtins)}
    for source in (block.partition("```")[0] for block in texts().split("```python\n")[1:]):
        nodes = list(ast.walk(ast.parse(source)))
        used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        bound, arguments = _bound(nodes), {node.arg for node in nodes if isinstance(node, ast.arg)}
        used -= bound | arguments
        needs = {NEEDS[name] for name in _imported(nodes) if name in NEEDS}
        needs |= set().union(*(needs_of_name[name] for name in used & needs_of_name.keys()))
        found.append(Snippet(source, needs, used - needs_of_name.keys()))
        needs_of_name |= dict.fromkeys(bound, needs)
    return found


def _bound(nodes: list[ast.AST]) -> set[str]:
    """Names that are assigned, imported or defined anywhere."""
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    aliases = [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    return names | {alias.asname or alias.name.partition(".")[0] for alias in aliases}


def _imported(nodes: list[ast.AST]) -> set[str]:
    """Every module that is imported, and every package that it lies in."""
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [module.split(".") for module in modules]
    return {".".join(part[:count]) for part in parts for count in range(1, len(part) + 1)}
