"""Tables between marker comments in Markdown files."""

import re
from collections.abc import Callable, Mapping

END = "<!-- end of table -->"


def with_tables(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """Return the text with the content of every marked table replaced.

    Parameters
    ----------
    text : str
        Markdown with tables between ``<!-- table NAME -->`` and ``<!-- end of table -->``.
    tables : mapping of str to callable
        Functions that return the tables, by name.

    Raises
    ------
    ValueError
        If a name is unknown, or a marker has no counterpart.
    """

    def written(match: re.Match) -> str:
        if match["name"] not in tables:
            raise ValueError(f"`table` must be one of {', '.join(sorted(tables))}, got {match['name']!r}")
        return f"{match['start']}\n{tables[match['name']]()}\n{END}"

    if text.count("<!-- table ") != text.count(END):
        raise ValueError(
            f"every table must have an end, got {text.count('<!-- table ')} tables and {text.count(END)} ends"
        )
    return re.sub(rf"(?P<start><!-- table (?P<name>[\w-]+) -->)\n.*?{END}", written, text, flags=re.DOTALL)


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
