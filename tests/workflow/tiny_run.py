"""The workflow in a folder of its own, with a profile that takes seconds."""

import shutil
from pathlib import Path

import yaml

from replication.files.paths import ROOT

PROFILE = "tiny"
#: Of the checkout, what a run reads.
READ = """Snakefile benchmarks checkpoints config kernels notebooks profiles replication reported requirements.lock sparselib
workflow""".split()


def checkout(folder: Path, copied: tuple[str, ...] = ()) -> Path:
    """A folder in which the workflow runs as in this checkout, with results and locks of its own.

    Folders that are not ``copied`` are links: what runs in them finds the files beside it in this checkout.
    """
    folder.mkdir()
    for name in READ:
        if name in copied:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            (folder / name).symlink_to(ROOT / name)
    smoke = yaml.safe_load((ROOT / "config/smoke.yaml").read_text())
    smoke = {key: smoke[key] for key in ("seed", "student_seeds", "char_lm")} | {
        "profile": PROFILE,
        "checkpoints": False,
    }
    (text,) = smoke["char_lm"]["corpora"].values()
    smoke["char_lm"]["corpora"] = {"tiny": text}
    (folder / f"{PROFILE}.yaml").write_text(yaml.safe_dump(smoke))
    return folder
