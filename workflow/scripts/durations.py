"""Store the last default run's step durations, without steps that no longer exist and the short names of figures."""

import json
import subprocess
import sys

from replication.files.paths import ROOT
from replication.files.storage import write_json

LAST, STORED = (ROOT / folder / "seconds/demo.json" for folder in (".snakemake", "workflow"))


def main() -> None:
    """Write the file that estimates of the time left are read from."""
    listed = subprocess.run(
        [sys.executable, "-m", "snakemake", "--list-rules"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rules = set(listed.stdout.split())
    seconds = json.loads(LAST.read_text(encoding="utf-8"))
    # A figure's short name runs nothing. Nor does `all`, but without it the time left would be a lower bound.
    kept = {rule: took for rule, took in sorted(seconds.items()) if rule in rules and (took > 0 or rule == "all")}
    write_json(STORED, kept)


if __name__ == "__main__":
    main()
