"""Where a table stands in a text: between a comment with its name and a comment that ends it."""

import re
from collections.abc import Callable, Mapping

END = "<!-- end of table -->"


def with_tables(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The text with every table that it names written anew.

    Raises
    ------
    ValueError
        If it names a table that there is not, or one has no end.
    """

    def written(match: re.Match) -> str:
        if match["name"] not in tables:
            raise ValueError(f"no table {match['name']!r}, only {', '.join(sorted(tables))}")
        return f"{match['start']}\n{tables[match['name']]()}\n{END}"

    if text.count("<!-- table ") != text.count(END):
        raise ValueError(f"{text.count('<!-- table ')} tables begin, and {text.count(END)} end")
    return re.sub(rf"(?P<start><!-- table (?P<name>[\w-]+) -->)\n.*?{END}", written, text, flags=re.DOTALL)


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
