"""The site: `make docs`. Its pages are the repository's own, where they lie: the source folder is the root."""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

project = "Sparsefinder, reproduced"
author = "The Sparsefinder reproduction authors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
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

# Notebooks are shown as they were run and stored, with the default run's numbers.
nb_execution_mode = "off"
nb_merge_streams = True
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = [
    # Links to code, settings and folders of the repository, which are no pages; a test looks that they are there.
    "myst.xref_missing",
    # README begins with the title, and stored figures with headings of their own.
    "myst.header",
    # A name of the package's own door, and of the module behind it: either leads to what is meant.
    "ref.python",
]

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "imported-members": True, "show-inheritance": True, "no-value": True}
autodoc_typehints = "signature"
napoleon_google_docstring = False
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = project
html_extra_path = ["first"]  # the page at the root, which leads to docs/
html_show_sphinx = False
html_copy_source = False


def setup(app) -> None:
    # Before napoleon, which reads sections.
    app.connect("autodoc-process-docstring", sections, priority=100)
    app.connect("source-read", for_the_site)


def sections(app, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Give what a docstring says in sentences of errors, and its examples, sections of their own: after others, napoleon takes
    them for the last of the parameters.
    """
    found, inside = [], ""
    for number, line in enumerate(lines):
        begins = number == 0 or not lines[number - 1].strip()
        raised = re.match(r"Raises ``(\w+)``,? ?(.*)", line)
        if begins and raised:
            found += ["Raises", "------", raised[1], f"    {raised[2]}"]
            inside = "Raises"
        elif begins and line.startswith(">>> ") and inside != "Example":
            found += [] if found[-1:] == ["-------"] else ["Example", "-------"]
            found.append(line)
            inside = "Example"
        else:
            inside = "" if inside == "Raises" and not line.strip() else inside
            found.append(f"    {line}" if inside == "Raises" else line)
    lines[:] = found


def for_the_site(app, docname: str, content: list[str]) -> None:
    """What Jupyter or a forge understands, and a site does not: pictures attached to cells, links from outputs to other
    notebooks, and links to folders.
    """
    if not docname.startswith("notebooks/"):
        content[0] = re.sub(r"(!?)\[([^]]*)\]\(([^)#:]+)\)", lambda link: _followed(docname, link), content[0])
        return
    notebook = json.loads(content[0])
    for cell in notebook["cells"]:
        for name, pictures in cell.pop("attachments", {}).items():
            for kind, data in pictures.items():
                cell["source"] = [
                    line.replace(f"attachment:{name}", f"data:{kind};base64,{data}") for line in cell["source"]
                ]
        for output in cell.get("outputs", []):
            if lines := output.get("data", {}).get("text/markdown"):
                output["data"]["text/markdown"] = re.sub(r"\.ipynb\)", ".html)", "".join(lines))
    content[0] = json.dumps(notebook)


def _followed(docname: str, link: re.Match) -> str:
    """A link to a folder leads to the page about it, or is its text where there is none."""
    folder = (ROOT / docname).parent / link[3]
    if not folder.is_dir():
        return link[0]
    page = folder / ("index.ipynb" if folder.name == "notebooks" else "README.md")
    return f"[{link[2]}]({link[3].rstrip('/')}/{page.name})" if page.exists() else link[2]
