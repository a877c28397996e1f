"""Write the tables of the READMEs from the files of the runs; with --check, only say which would change."""

import sys
from pathlib import Path

from replication.paths import ROOT
from replication.storage import replacing
from replication.tables.attention import speed, targets
from replication.tables.markers import with_tables

TABLES = {"attention-speed": speed, "attention-targets": targets}
TEXTS = ("README.md",)


def changed() -> dict[Path, str]:
    """The texts of which a table would change, as they would be."""
    now = {ROOT / name: (ROOT / name).read_text(encoding="utf-8") for name in TEXTS}
    new = {path: with_tables(text, TABLES) for path, text in now.items()}
    return {path: text for path, text in new.items() if text != now[path]}


def main() -> None:
    texts = changed()
    for path, text in texts.items():
        print(f"{path.relative_to(ROOT)}: tables are not those of the files")
        if "--check" not in sys.argv:
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
    if texts and "--check" in sys.argv:
        sys.exit(1)


if __name__ == "__main__":
    main()
