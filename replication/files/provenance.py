"""What affects a file's numbers besides its settings: the machine, versions, and the source."""

import hashlib
import os
import platform
import sys
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path


def provenance() -> dict[str, str]:
    """Return what affects numbers besides the arguments: the machine, versions, and a hash of the source."""
    packages = ("torch", "transformers", "scikit-learn", "numpy")
    return {
        "source": source_hash(),
        "hardware": hardware(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def hardware() -> str:
    """Return the name of the accelerator if this process uses one, else of the processor with its number of cores."""
    # Stages without tensors do not import torch, which takes seconds.
    if (torch := sys.modules.get("torch")) and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores"


@cache
def source_hash() -> str:
    """Return a hash of all Python files of replication, sparselib and kernels, the same in a checkout and an installation."""
    files = {}
    for package in ("replication", "sparselib"):
        folder = Path(find_spec(package).origin).parent
        files |= {Path(package, path.relative_to(folder)): path for path in folder.rglob("*.py")}
    # `folder` is sparselib's here. An installation has the kernels inside it. They are not imported, since that imports torch.
    if not (folder / "kernels").is_dir():
        files |= {Path("sparselib/kernels", path.name): path for path in folder.with_name("kernels").glob("*.py")}
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(name.as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]
