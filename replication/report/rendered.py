"""Executed notebooks as pages that any browser shows, without network."""

import re
from functools import cache
from html import escape
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter

STYLE = Path(__file__).with_name("notebook.css")


def render(notebook: Path) -> str:
    """Return an executed notebook as an HTML page.

    Links to other notebooks lead to their pages, and each picture's text alternative is the notebook's title.
    """
    content = nbformat.read(notebook, as_version=4)
    title = content.cells[0].source.partition("\n")[0].removeprefix("# ")
    for cell in content.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.metadata["image/png"] = {"alt": title}
    body, _ = _exporter().from_notebook_node(content)
    body = re.sub(r'(href="(?!https?:)[^"]*)\.ipynb"', r'\1.html"', body)
    code = HtmlFormatter(style="default").get_style_defs(".highlight")
    night = HtmlFormatter(style="monokai").get_style_defs(".highlight")
    style = STYLE.read_text(encoding="utf-8") + code + "@media (prefers-color-scheme: dark) {" + night + "}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>{body}</body></html>\n"
    )


@cache
def _exporter() -> HTMLExporter:
    """Return the exporter; it compiles its templates once for all notebooks."""
    return HTMLExporter(template_name="basic", exclude_anchor_links=True)
