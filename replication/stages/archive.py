"""The stage that puts a run into one file."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Output


def archive(
    results: Annotated[Path, typer.Option(help="folder of the run's results")],
    file: Annotated[list[Path], typer.Option(help="file or folder to keep, by its path from here; repeat")],
    output: Output,
) -> None:
    """Write a checksummed zip of files of a run, an RO-Crate: what was made by which stage, from what, with which versions."""
    from replication.archives.container import write
    from replication.archives.crate import METADATA, metadata
    from replication.files.seals import seal_of

    if missing := [str(path) for path in file if not path.exists()]:
        raise FileNotFoundError(f"{', '.join(missing)}: not there")
    files = [inner for path in file for inner in ([path] if path.is_file() else sorted(path.rglob("[!.]*")))]
    files = [path for path in files if not path.is_dir()]
    seals = [seal_of(path) for path in files if seal_of(path).exists()]
    write(output, {path.as_posix(): path for path in [*files, *seals]} | {METADATA: metadata(results, files)})
