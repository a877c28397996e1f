"""Snakemake's first steps: the line about its profile, and missing configuration files."""

import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

#: Snakemake prints this before it reads the profile, so no setting of the profile can turn it off.
LINE = "Using workflow specific profile profiles/default "


def hide_the_default_profile() -> None:
    """Keep Snakemake from announcing the profile that every command here uses."""
    from snakemake import cli

    def print_unless_default(*texts: object, **options) -> None:
        if not str(texts[0] if texts else "").startswith(LINE):
            print(*texts, **options)

    cli.print = print_unless_default


def check_config_files(arguments: Sequence[str]) -> None:
    """Exit with a one-line error if a word after ``--configfile`` is no file; Snakemake would print a traceback.

    Parameters
    ----------
    arguments : sequence of str
        Snakemake's command line, without the program's name.
    """
    for number, argument in enumerate(arguments):
        option, _, value = argument.partition("=")
        if option in ("--configfile", "--configfiles"):
            given = (
                [value] if value else list(takewhile(lambda text: not text.startswith("-"), arguments[number + 1 :]))
            )
            for name in given:
                if Path(name).is_file():
                    continue
                if name != given[0] and not name.endswith((".yaml", ".yml", ".json")):
                    # Snakemake takes all words up to the next option for files.
                    sys.exit(
                        f"--configfile: {name} is no file; write targets first: snakemake {name} ... {option} {given[0]}"
                    )
                known = ", ".join(path.as_posix() for path in sorted(Path("config").glob("*.yaml")))
                sys.exit(f"--configfile: {name} does not exist; there are: {known}")
