"""Sphinx configuration of the site (`make docs`). The source folder is the root, because pages stay where they are."""

import json
import re
import sys
from importlib import import_module
from pathlib import Path

from sphinx.ext import autosummary

from replication.pages import interactive, write_claims
from replication.report.explorer import explorer
from replication.tables.claims import published

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

project = "Sparsefinder, reproduced"
author = "The Sparsefinder reproduction authors"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "notebooks/**.ipynb",
    "README.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "config/README.md",
    "profiles/README.md",
    "reported/README.md",
    "reported/*/README.md",
]
exclude_patterns = [".*", "results", "build", "**/.ipynb_checkpoints"]

# Notebooks show the stored outputs of the default run.
nb_execution_mode = "off"
nb_merge_streams = True
# Tables of printed Markdown, which the default CommonMark does not know.
nb_render_markdown_format = "gfm"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = [
    # Links to code, settings and folders are not pages of the site; a test checks that their targets exist.
    "myst.xref_missing",
    # Heading levels of the README and of stored figures do not start at 1.
    "myst.header",
    # Names that a package re-exports have two targets, both of which are right.
    "ref.python",
]

# Summaries in tables end with a sentence, not with the point of one of these.
autosummary.WELL_KNOWN_ABBREVIATIONS += ("Eq.", "Eqs.", "App.", "Fig.", "Figs.", "Prop.")
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "imported-members": True, "show-inheritance": True, "no-value": True}
autodoc_typehints = "signature"
napoleon_google_docstring = False
# Source pages link to one page for each object, and names that a package re-exports are on two.
viewcode_follow_imported_members = False
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = project
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("scroll.js", {"defer": "defer"})]
html_extra_path = ["first"]  # index.html of the site, which redirects to docs/
html_show_sphinx = html_show_copyright = False
html_copy_source = False


#: Folder of the claims' pages, which are written from the stored ledgers whenever the site is built.
CLAIMS = "docs/claims"
#: Pages that others are below in the sidebar, which would be long with all of them.
BELOW = {
    "reported/README": ["/reported/*/README"],
    "notebooks/index": [
        "/notebooks/00_patterns",
        *(
            f"/notebooks/{name}/*"
            for name in ("sparsefinder", "retrofit", "explicit_sparse", "extremely_sparse", "factorised")
        ),
    ],
}
STATED = published()


def setup(app) -> None:
    # Before Sphinx looks for pages.
    write_claims(ROOT / CLAIMS)
    app.connect("source-read", for_the_site)
    # After Furo's, which renders the navigation.
    app.connect("html-page-context", make_accessible, priority=900)
    app.connect("build-finished", write_whole_pages)


def make_accessible(app, page: str, template: str, context: dict, doctree: object) -> None:
    """Change what readers of screens cannot announce: headings of the navigation without a level, names of buttons that differ
    from their text, and parameters in a list within a term.
    """
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    body = context.get("body", "").replace(' aria-label="Toggle hidden content"', "")
    context["body"] = re.sub(
        r"<dl>\n((?:<dd><em class=\"sig-param\">.*</dd>\n)+)</dl>", r'<div class="parameters">\n\1</div>', body
    )
    context["body"] = re.sub(r"<dd>(<em class=\"sig-param\">.*)</dd>", r"<div>\1</div>", context["body"])


def write_whole_pages(app, exception: Exception | None) -> None:
    """Write the pages that work without the others: the interactive ledger and the attention explorer."""
    if exception is None and app.builder.format == "html":
        Path(app.outdir, CLAIMS, "index.html").write_text(interactive(), encoding="utf-8")
        passage = (ROOT / "reported/demo/passage.json").read_text(encoding="utf-8")
        Path(app.outdir, "docs/explorer.html").write_text(explorer(passage, "demo", "index.html"), encoding="utf-8")


def for_the_site(app, docname: str, content: list[str]) -> None:
    """Convert what Jupyter and GitHub display but Sphinx does not: images attached to cells, links from outputs to other
    notebooks, and links to folders. Add a summary to reference pages, and to notebooks a download and their title as the text
    alternative of pictures. Fold the code of notebooks.
    """
    if docname.startswith("docs/reference/"):
        content[0] = re.sub(r"```{eval-rst}\n(?=\.\. automodule:: ([\w.]+))", _with_summary, content[0], count=1)
    below = "\n".join(["```{toctree}", ":hidden:", ":glob:", "", *BELOW.get(docname, []), "```"])
    if not docname.startswith("notebooks/"):
        content[0] = _with_claims(docname, content[0]) + (f"\n\n{below}\n" if docname in BELOW else "")
        content[0] = re.sub(r"(!?)\[([^]]*)\]\(([^)#:]+)\)", lambda link: _followed(docname, link), content[0])
        return
    notebook = json.loads(content[0])
    file = docname.rpartition("/")[2] + ".ipynb"
    title = notebook["cells"][0]["source"][0].removeprefix("# ").strip()
    notebook["cells"][0]["source"] += ["\n\n", f"{{nb-download}}`Download this notebook <{file}>`"]
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["metadata"]["mystnb"] = {"image": {"alt": title}}
            # The tutorial's code is its content; elsewhere the figure comes first.
            if file != "tutorial.ipynb":
                cell["metadata"].setdefault("tags", []).append("hide-input")
        for name, pictures in cell.pop("attachments", {}).items():
            for kind, data in pictures.items():
                cell["source"] = [
                    line.replace(f"attachment:{name}", f"data:{kind};base64,{data}") for line in cell["source"]
                ]
        for output in cell.get("outputs", []):
            if lines := output.get("data", {}).get("text/markdown"):
                text = re.sub(r"\.ipynb\)", ".html)", "".join(lines))
                if docname == "notebooks/claims":
                    text = re.sub(r"(?m)^\| (\d+) ", _numbered, text)
                output["data"]["text/markdown"] = text
    if docname in BELOW:
        notebook["cells"].append({"cell_type": "markdown", "id": "below", "metadata": {}, "source": [below]})
    content[0] = json.dumps(notebook)


def _with_claims(docname: str, text: str) -> str:
    """Make links to the claims' pages of statements in tables, and of ids in the history of the rules."""
    if docname.startswith(f"{CLAIMS}/"):
        return text
    up = "../" * docname.count("/")
    for name, statement in zip(STATED["id"], STATED["statement"], strict=True):
        page = f"{up}{CLAIMS}/{name}.md"
        text = text.replace(f"| {statement} |", f"| [{statement}]({page}) |").replace(
            f"`{name}`", f"[`{name}`]({page})"
        )
    return text


def _numbered(cell: re.Match) -> str:
    """Make a link to the claim's page of the number that begins a row of the ledger."""
    return f"| [{cell[1]}](../{CLAIMS}/{STATED['id'].iloc[int(cell[1]) - 1]}.html) "


def _with_summary(automodule: re.Match) -> str:
    """Return the beginning of a reference page with a table of the module's public names before their descriptions."""
    module = import_module(name := automodule[1])
    public = {member: getattr(module, member) for member in module.__all__}
    # Constants have no text of their own.
    entries = "".join(
        f"   {member}\n" for member, value in public.items() if callable(value) and hasattr(value, "__name__")
    )
    return f"```{{eval-rst}}\n.. currentmodule:: {name}\n.. autosummary::\n   :nosignatures:\n\n{entries}\n"


def _followed(docname: str, link: re.Match) -> str:
    """Replace a link to a folder by a link to its page, or by its text if there is no page."""
    folder = (ROOT / docname).parent / link[3]
    if not folder.is_dir():
        return link[0]
    page = folder / ("index.ipynb" if folder.name == "notebooks" else "README.md")
    return f"[{link[2]}]({link[3].rstrip('/')}/{page.name})" if page.exists() else link[2]
