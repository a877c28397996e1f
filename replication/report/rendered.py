"""Executed notebooks as pages that any browser shows, without network."""

import re
from functools import cache
from html import escape
from pathlib import Path

import nbformat
from bleach import clean
from bleach.css_sanitizer import CSSSanitizer
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter

STYLE = Path(__file__).with_name("notebook.css")
#: Elements and attributes of pages. Others are left out, since notebooks of other people's archives can have any.
TAGS = frozenset(
    "a b blockquote br caption code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img kbd li ol p pre small span strong"
    " sub summary sup table tbody td tfoot th thead tr ul".split()
)
CELL = ("class", "id", "style", "colspan", "rowspan")
ATTRIBUTES = {
    "*": ["class", "id"],
    "td": CELL,
    "th": CELL,
    "tr": CELL,
    "a": lambda tag, name, value: name in ("class", "id", "title") or (name == "href" and bool(LINK.match(value))),
    "img": lambda tag, name, value: name == "alt" or (name == "src" and bool(PICTURE.fullmatch(value))),
}
#: Links to other sites and pages, and pictures within the page.
LINK = re.compile(r"https?://|mailto:|[^:]*$")
PICTURE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=\s]*")
STYLES = CSSSanitizer(
    ["background-color", "color", "font-style", "font-weight", "min-width", "text-align", "vertical-align"]
)
#: What a browser may do, should something else be left: show pictures within the page, and nothing else.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"


def render(notebook: Path) -> str:
    """Return an executed notebook as an HTML page.

    Links to other notebooks lead to their pages, and each picture's text alternative is the notebook's title. Scripts, and
    whatever else is neither text, a table, a link nor a picture, are left out.
    """
    content = nbformat.read(notebook, as_version=4)
    title = content.cells[0].source.partition("\n")[0].removeprefix("# ")
    for cell in content.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.metadata["image/png"] = {"alt": title}
    body, _ = _exporter().from_notebook_node(content)
    # Without their tags, the content of these would be text.
    body = re.sub(r"<(script|style)\b.*?</\1\s*>", "", body, flags=re.DOTALL | re.IGNORECASE)
    protocols = ("http", "https", "mailto", "data")
    body = clean(body, tags=TAGS, attributes=ATTRIBUTES, protocols=protocols, css_sanitizer=STYLES, strip=True)
    body = re.sub(r'(href="(?!https?:)[^"]*)\.ipynb"', r'\1.html"', body)
    code = HtmlFormatter(style="default").get_style_defs(".highlight")
    night = HtmlFormatter(style="monokai").get_style_defs(".highlight")
    style = STYLE.read_text(encoding="utf-8") + code + "@media (prefers-color-scheme: dark) {" + night + "}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>{body}</body></html>\n"
    )


@cache
def _exporter() -> HTMLExporter:
    """Return the exporter; it compiles its templates once for all notebooks."""
    return HTMLExporter(template_name="basic", exclude_anchor_links=True)
