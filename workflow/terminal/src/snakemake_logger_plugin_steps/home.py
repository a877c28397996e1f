"""A home folder that can be written: Snakemake, Jupyter and matplotlib keep caches and settings in it."""

import os
from pathlib import Path


def use_writable_home(folder: Path = Path(".snakemake", "home")) -> None:
    """Give this process and its jobs another home if the user's is read-only; models in its cache are still found."""
    home = Path.home()
    if os.access(home, os.W_OK):
        return
    os.environ.setdefault("HF_HOME", str(home / ".cache" / "huggingface"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["HOME"] = str(folder.absolute())
