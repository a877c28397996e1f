"""Checks of a run's executed notebooks and pictures before they are shown or archived as the run's."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

from replication.files.storage import FormatError

#: The parameter that names the run, as notebooks define it and as papermill injects it.
PROFILE = re.compile(r"^profile(?:: str)? = [\"'](.*?)[\"']", re.MULTILINE)
#: Elements of SVG that run code or load pages.
ACTIVE = {"script", "foreignObject", "iframe", "embed", "object", "handler", "set", "animate", "animateTransform"}


def check_notebook(path: Path, profile: str) -> None:
    """Check that a notebook was executed for a run.

    Raises
    ------
    FormatError
        If it shows another run, or names none.
    """
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    names = [name for cell in cells if cell["cell_type"] == "code" for name in PROFILE.findall("".join(cell["source"]))]
    # papermill injects its parameters after those of the notebook.
    if names[-1:] != [profile]:
        shown = repr(names[-1]) if names else "none"
        raise FormatError(f"{path}: must show the run {profile!r}, got {shown}; move it away and run `snakemake` again")


def check_picture(path: Path, svg: str) -> None:
    """Check that a picture contains nothing that a browser would run or load.

    Raises
    ------
    FormatError
        If it contains scripts, event handlers or links to other pages, or is no SVG.
    """
    try:
        elements = list(ElementTree.fromstring(svg).iter())
    except ElementTree.ParseError as error:
        raise FormatError(f"{path}: is not an SVG picture ({error}); move it away and draw it again") from error
    for element in elements:
        name = element.tag.rpartition("}")[2]
        found = f"<{name}>" if name in ACTIVE else next(filter(None, map(_active, element.items())), "")
        if found:
            raise FormatError(
                f"{path}: contains {found}, which no figure of a run does; move it away and draw it again"
            )


def _active(attribute: tuple[str, str]) -> str:
    """Return an attribute that runs code or links to another page, or an empty string."""
    key, value = attribute[0].rpartition("}")[2].lower(), attribute[1].strip().lower()
    links = key in ("href", "src") and not value.startswith(("#", "data:image/png;base64,"))
    return f"{key}={value:.40}" if key.startswith("on") or links or "javascript:" in value else ""
