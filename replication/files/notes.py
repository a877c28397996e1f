"""Notes of a stage to its user, which the workflow shows below the stage's line."""

import sys
from functools import cache

#: Beginning of a note's line in a log; the workflow's logger plugin looks for it.
MARK = "note: "


@cache
def note(text: str) -> None:
    """Print a note to standard error, once per process."""
    print(f"{MARK}{' '.join(text.split())}", file=sys.stderr, flush=True)
