"""Check of a run's executed notebooks before they are shown or archived as the run's."""

import json
import re
from pathlib import Path

from replication.files.storage import FormatError

#: The parameter that names the run, as notebooks define it and as papermill injects it.
PROFILE = re.compile(r"^profile(?:: str)? = [\"'](.*?)[\"']", re.MULTILINE)


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
