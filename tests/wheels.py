"""Wheels of the checkout, and environments that hold no more than they are told to."""

import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from packaging.requirements import Requirement

from replication.files.paths import ROOT

PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


def copy_checkout(folder: Path) -> Path:
    """What wheels are made of: building leaves files behind, and reads what an earlier build left."""
    leftovers = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "*.so.1")
    for name in ("sparselib", "kernels", "replication"):
        shutil.copytree(ROOT / name, folder / name, ignore=leftovers)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def build_wheel(source: Path, folder: Path) -> Path:
    """The wheel of a project, made offline with the setuptools that is installed here."""
    build = ["wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder), str(source)]
    subprocess.run([*PIP, *build], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def files_of(wheel: Path) -> set[str]:
    """Paths in a wheel, without those of its metadata."""
    names = ZipFile(wheel).namelist()
    return {name for name in names if not PurePosixPath(name).parts[0].endswith(".dist-info")}


def environment_of(wheel: Path, folder: Path, *distributions: str) -> Path:
    """A Python with nothing but its standard library, a wheel, and installed distributions with what they require."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    subprocess.run(
        [*PIP, "install", "--no-deps", "--no-index", "--target", str(folder / "target"), str(wheel)], check=True
    )
    (packages / "target.pth").write_text(f"{folder / 'target'}\n")
    for name in required_by(*distributions):
        for path in {file.parts[0] for file in distribution(name).files}:
            if path not in ("..", "__pycache__") and not (packages / path).exists():
                (packages / path).symlink_to(Path(distribution(name).locate_file(path)))
    return folder / "bin" / "python"


def required_by(*distributions: str) -> set[str]:
    """These distributions, and all that they require on this machine without any extra."""
    found: set[str] = set()
    waiting = list(distributions)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        requirements = map(Requirement, distribution(name).requires or [])
        waiting += [one.name for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found
