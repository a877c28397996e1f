"""Folders of runs: which run a path belongs to, and which of a run's files its manifest lists."""

import re
from pathlib import Path, PurePosixPath

#: Folders with a folder per run: this checkout's runs, and stored ones.
PLACES = ("results", "reported")
MANIFEST, LOCK, CONFIGURATION = "made.json", "made.lock", "config.yaml"
#: Folders of tasks at the top of a run.
TASKS = (
    *("masked_lm", "translation", "char_lm", "patterns", "forms"),
    *("captioning", "normalizer_speed", "retrofit", "factorised"),
)
#: Files and folders at the top of a run that manifests leave out.
LEFT_OUT = ("logs", "README.md", MANIFEST, LOCK)
#: Folders at the top of a run whose listed files users draw again, with other parameters.
DRAWN = ("notebooks", "figures")
#: Unfinished trainings, in a model's folder. A corpus or a model can have the same name, but lies elsewhere.
UNFINISHED = re.compile(
    r"(.+/)?(model|[^/]*seed\d+|normalizer_speed/models/[^/]+/[^/]+)/(checkpoints(/.*)?|checkpoint\.safetensors)"
)


def root_of(path: Path) -> Path | None:
    """Return the folder of the run that a file is in, or None.

    A corpus can be called ``results`` too, and a checkout can lie in a folder of that name. The run is therefore the outermost
    such folder with a manifest or a task, or else the innermost one.
    """
    parts = Path(path).absolute().parts
    found = [number for number, part in enumerate(parts[:-2]) if part in PLACES]
    for number in found:
        root = Path(*parts[: number + 2])
        if number == found[-1] or parts[number + 2] in TASKS or (root / MANIFEST).exists():
            return root
    return None


def place_of(path: Path) -> str:
    """Return a file's path below its run's folder."""
    return Path(path).absolute().relative_to(root_of(path)).as_posix()


def is_left_out(place: str) -> bool:
    """Return whether manifests leave out a file or folder of a run."""
    parts = PurePosixPath(place).parts
    return parts[0] in LEFT_OUT or any(part.startswith(".") for part in parts) or bool(UNFINISHED.fullmatch(place))


def is_drawn(place: str) -> bool:
    """Return whether a file of a run, or a folder, is a figure or an executed notebook."""
    return PurePosixPath(place).parts[0] in DRAWN
