"""Replay of an archive: its ledger, notebooks and figures are made again and compared byte by byte."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pandas as pd

from replication.archives.container import opened
from replication.claims import TESTS, judged_rows
from replication.files.manifest import changing, making
from replication.files.names import file_name
from replication.files.paths import ELSEWHERE, ROOT
from replication.files.storage import FormatError, write_table
from replication.files.verification import verify
from replication.jupyter import kernel_environment

#: Rules of the ledger, in the repository and in archives.
PUBLISHED = "config/published/claims.csv"


def replay(archive: Path, folder: Path, cores: int = 1, say: Callable[[str], None] = print) -> list[str]:
    """Unpack the measurements of a run into a new folder, make its ledger, tables and figures again, and compare them.

    Nothing is trained or downloaded. Notebooks and code are those of this checkout: predictors in the archive are named and not
    run. Rows of claims that this checkout does not have are named and kept as they are. Ledger and figures are compared as
    files, tables as outputs of notebook cells.

    Parameters
    ----------
    archive : Path
        A file of ``make archive``.
    folder : Path
        Folder to create; it gets the layout of the run's checkout.
    cores : int
        Notebooks that run at the same time.
    say : callable
        Function that reports progress.

    Returns
    -------
    list of str
        Names in the archive of the files that differ.

    Raises
    ------
    FormatError
        If the archive has changed since it was written, or does not contain one run.
    FileExistsError
        If the folder exists.
    ChildProcessError
        If a notebook fails.
    """
    with opened(archive) as file:
        if folder.exists():
            raise FileExistsError(f"{folder}: already exists; choose a new folder")
        results = _results(archive, file)
        made_again = [
            name
            for name in file.namelist()
            if name == f"{results}/claims.csv" or name.startswith((f"{results}/notebooks/", f"{results}/figures/"))
        ]
        before = {name: file.read(name) for name in made_again}
        notebooks = [(name, _notebook(name, content)) for name, content in before.items() if name.endswith(".ipynb")]
        stored = [name for name in file.namelist() if name not in before]
        for name in stored:
            file.extract(name, folder)
    # The ledger itself, notebooks and figures are made again.
    with changing(folder / results) as manifest:
        manifest["made"].pop("claims.csv", None)
    verify(folder / results)
    with making(f"claims {results}"):
        judged, unknown = _judged(folder, results, before[f"{results}/claims.csv"])
        write_table(folder / results / "claims.csv", judged)
    if unknown:
        say(f"{archive}: not judged again, because this checkout does not have these claims: {', '.join(unknown)}")
    if own := [name for name in stored if name.startswith(f"{results}/predictors/")]:
        say(f"{archive}: has predictors of its author, whose code is not run: {', '.join(own)}")
    say(f"{archive}: intact; running {len(notebooks)} notebooks")
    with ThreadPoolExecutor(cores) as pool:
        for name in pool.map(partial(_run, folder), notebooks):
            say(name)
    return [name for name, content in before.items() if _differs(content, folder / name)]


def _judged(folder: Path, results: str, before: bytes) -> tuple[pd.DataFrame, list[str]]:
    """Return the ledger, with the stored rows of claims that this checkout does not have, and the ids of these."""
    claims = pd.read_csv(folder / PUBLISHED)
    is_known = claims["id"].isin(TESTS.keys())
    judged = judged_rows(claims[is_known], folder / results)
    if is_known.all():
        return judged, []
    stored = pd.read_csv(io.BytesIO(before), keep_default_na=False)
    kept = stored[stored["id"].isin(claims.loc[~is_known, "id"])]
    table = pd.concat([judged, kept.assign(effect=pd.to_numeric(kept["effect"]))], ignore_index=True)
    places = dict(zip(claims["id"], range(len(claims)), strict=True))
    ordered = table.sort_values("id", key=lambda names: names.map(places).fillna(len(claims)), kind="stable")
    return ordered, kept["id"].tolist()


def _results(archive: Path, file: ZipFile) -> str:
    """Return the folder of the run's results within the archive."""
    configurations = [name for name in file.namelist() if re.fullmatch("results/[^/]+/config.yaml", name)]
    if len(configurations) != 1:
        raise FormatError(f"{archive}: must contain the configuration of one run, got {len(configurations)}")
    results = str(PurePosixPath(configurations[0]).parent)
    names = file.namelist()
    if missing := [name for name in (f"{results}/claims.csv", PUBLISHED) if name not in names]:
        raise FormatError(f"{archive}: must contain {' and '.join(missing)}, which it would be compared with")
    if not any(name.startswith(f"{results}/notebooks/") and name.endswith(".ipynb") for name in names):
        raise FormatError(f"{archive}: must contain a notebook in {results}/notebooks/, got none")
    return results


def _notebook(name: str, content: bytes) -> dict:
    """Return an executed notebook.

    Raises
    ------
    FormatError
        If it is none, or was not made from a notebook of this checkout by setting its parameters.
    """
    try:
        notebook = json.loads(content)
        papermill = notebook["metadata"]["papermill"]
        path, parameters = (ROOT / papermill["input_path"]).resolve(), papermill["parameters"]
        known = path.is_relative_to(ROOT / "notebooks") and path.is_file() and all(map(str.isidentifier, parameters))
        for value in parameters.values():
            if isinstance(value, str):  # the name of a run, a language pair or a figure
                file_name(Path(name), value)
        cells = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{name}: is not an executed notebook ({error!r})") from error
    if not known or not cells:
        raise FormatError(f"{name}: was not made from a notebook of this repository")
    return notebook


def _run(folder: Path, executed: tuple[str, dict]) -> str:
    """Run this checkout's version of an executed notebook on the results in the folder, and return its name."""
    name, before = executed
    papermill = before["metadata"]["papermill"]
    notebook = (ROOT / papermill["input_path"]).resolve()
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", str(notebook), str(folder / name)]
    for key, value in papermill["parameters"].items():
        # Raw, because papermill turns a text such as 2024 into a number.
        command += ["-r" if isinstance(value, str) else "-p", key, str(value)]
    environment = kernel_environment() | {ELSEWHERE: str(folder.absolute())}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        (*_, reason) = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        raise ChildProcessError(f"{name}: the notebook failed: {reason}")
    return name


def _differs(before: bytes, path: Path) -> bool:
    if not path.exists():
        return True
    after = path.read_bytes()
    if path.suffix == ".ipynb":
        return _outputs(json.loads(before)) != _outputs(json.loads(after))
    return before != after


def _outputs(notebook: dict) -> list:
    """Return the outputs of all cells without warnings, which name the kernel's temporary files."""
    cells = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [[output for output in outputs if output.get("name") != "stderr"] for outputs in cells]
