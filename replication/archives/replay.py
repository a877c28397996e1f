"""What is in an archive, made again: its ledger judged, its notebooks run and its figures drawn, and compared byte by byte."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pandas as pd

from replication.archives.container import opened
from replication.claims import ledger
from replication.files.paths import ELSEWHERE, ROOT
from replication.files.storage import FormatError, write_table

#: The ledger's rules, in the repository and in archives.
PUBLISHED = "config/published/claims.csv"


def replay(archive: Path, folder: Path, cores: int = 1, say: Callable[[str], None] = print) -> list[str]:
    """Unpack what a run has measured into a new folder, make its ledger, tables and figures anew, and compare.

    Nothing is trained, and no network is asked. Ledger and figures are compared as files, tables as the outputs of their
    notebooks' cells; the notebooks and all code are those of this checkout.

    Parameters
    ----------
    archive
        A file of ``make archive``.
    folder
        Is made, and has the layout of the checkout that the run was made in.
    cores
        Notebooks that run beside each other.

    Returns
    -------
    list of str
        Names in the archive of what differs.

    Raises
    ------
    FormatError
        If the archive has changed since it was written, or holds no run.
    FileExistsError
        If the folder is there already.
    RuntimeError
        If a notebook fails.
    """
    with opened(archive) as file:
        if folder.exists():
            raise FileExistsError(f"{folder}: is there already; nothing is written over it")
        results = _results(archive, file)
        made_again = [
            name
            for name in file.namelist()
            if name == f"{results}/claims.csv" or name.startswith((f"{results}/notebooks/", f"{results}/figures/"))
        ]
        before = {name: file.read(name) for name in made_again}
        for name in file.namelist():
            if name not in before and not name.endswith("/.claims.csv.seal"):
                file.extract(name, folder)
    judged = ledger(pd.read_csv(folder / PUBLISHED), folder / results)
    write_table(folder / results / "claims.csv", judged, may_be_empty=["effect"])
    notebooks = [(name, json.loads(content)) for name, content in before.items() if name.endswith(".ipynb")]
    say(f"{archive}: whole; {len(notebooks)} notebooks run again")
    with ThreadPoolExecutor(cores) as pool:
        for ended in pool.map(partial(_run, folder), notebooks):
            say(ended)
    return [name for name, content in before.items() if _differs(content, folder / name)]


def _results(archive: Path, file: ZipFile) -> str:
    """The folder of the run's results within the archive."""
    found = [name for name in file.namelist() if PurePosixPath(name).match("results/*/config.yaml")]
    if len(found) != 1:
        raise FormatError(f"{archive}: holds {len(found)} configurations of runs, where one is expected")
    return str(PurePosixPath(found[0]).parent)


def _run(folder: Path, executed: tuple[str, dict]) -> str:
    """Run the notebook of this checkout that was run for the archive, on what is in the folder."""
    name, before = executed
    told = before["metadata"]["papermill"]
    notebook = (ROOT / told["input_path"]).resolve()
    # Names come from a file: they may choose among notebooks of the checkout and set their parameters, and nothing else.
    if not notebook.is_relative_to(ROOT / "notebooks") or not all(key.isidentifier() for key in told["parameters"]):
        raise FormatError(f"{name}: was not made from a notebook of this repository")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", str(notebook), str(folder / name)]
    command += [word for key, value in told["parameters"].items() for word in ("-p", key, str(value))]
    environment = os.environ | {ELSEWHERE: str(folder.absolute())}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    return name


def _differs(before: bytes, path: Path) -> bool:
    after = path.read_bytes()
    if path.suffix == ".ipynb":
        return _outputs(json.loads(before)) != _outputs(json.loads(after))
    return before != after


def _outputs(notebook: dict) -> list:
    """What the cells of a notebook show."""
    return [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
