"""Ship models, and archive and replay runs."""

from pathlib import Path
from typing import Annotated

import typer

from replication.files.verification import inputs
from replication.stages.options import ConfigFile

Names = Annotated[
    list[str], typer.Argument(metavar="MODEL...", help="folders below the results, such as masked_lm/model")
]
Checkpoints = Annotated[Path, typer.Option(help="folder of all checkpoints, with weights.csv")]
Code = Annotated[str, typer.Option(help="hash of the code that trains them: python -m workflow.closure STAGE")]


def ship(names: Names, config: ConfigFile, code: Code, checkpoints: Checkpoints = Path("checkpoints")) -> None:
    """Store weights of trained models in half precision, with what made them, and list their hashes in weights.csv."""
    from replication.config import load
    from replication.files.checkpoints import MODEL, SUMMARY, ship
    from replication.run.layout import results_folder
    from replication.run.places import find
    from replication.run.trained import trained_models

    run = load(config)
    models = trained_models(run)
    chosen = {results_folder(run.profile) / name: find(name, models, "model") for name in names}
    for folder, model in chosen.items():
        inputs(folder / model.weights, folder, *model.text, *model.measured)
    for folder, model in chosen.items():
        beside = sorted(set(model.files) - {MODEL, model.weights, SUMMARY})
        text, measured = list(model.text), list(model.measured)
        digest = ship(folder, checkpoints, model.name, model.run, text, code, beside, measured, model.weights)
        typer.echo(f"{digest}  {model.name}")


def weights(names: Names, config: ConfigFile, code: Code) -> None:
    """Unpack shipped models, if settings, seed and text are those that made them; other code is only reported."""
    from replication.config import load
    from replication.files.checkpoints import unpack
    from replication.run.layout import ADAPTERS, results_folder
    from replication.run.places import find
    from replication.run.trained import trained_models

    run = load(config)
    if not run.checkpoints:
        raise ValueError("checkpoints: must be the folder of shipped models, got false")
    models = trained_models(run)
    chosen = [find(name, models, "model") for name in names]
    # A checkpoint that is missing is reported before its text, so that texts can be missing here.
    for model in chosen:
        inputs(*(path for path in model.text if path.exists()))
        output = results_folder(run.profile) / model.name
        for warning in unpack(Path(run.checkpoints), model.name, model.run, list(model.text), code, output):
            typer.echo(f"warning: {warning}", err=True)
        if model.weights == ADAPTERS:
            from replication.masked_lm.adapters import merge_adapters

            merge_adapters(output / ADAPTERS, output, model.run["model"]["pretrained"])


def compare_weights(
    results: Annotated[Path, typer.Argument(help="folder of a profile's results, with models trained again")],
    checkpoints: Checkpoints = Path("checkpoints"),
) -> None:
    """Report for each shipped model whether the retrained one has its weights: same, other or missing."""
    from replication.files.checkpoints import compare

    found = compare(checkpoints, results)
    for name, verdict in found.items():
        typer.echo(f"{verdict:8}{name}")
    if any(verdict != "same" for verdict in found.values()):
        raise typer.Exit(1)


def archive(
    results: Annotated[Path, typer.Option(help="folder of the run's results")],
    file: Annotated[list[Path], typer.Option(help="file or folder to keep, by its path from here; repeat")],
    output: Annotated[Path, typer.Option(help="file to write")],
) -> None:
    """Write a checksummed zip of files of a run, with its manifest: the stage, origin and versions of every file."""
    from replication.archives.container import write
    from replication.files.manifest import MANIFEST, encode, excerpt, read_manifest
    from replication.files.runs import root_of
    from replication.files.verification import verify
    from replication.report.checks import check_notebook

    if missing := [str(path) for path in file if not path.exists()]:
        raise FileNotFoundError(f"{', '.join(missing)}: no such file")
    files = [inner for path in file for inner in ([path] if path.is_file() else sorted(path.rglob("[!.]*")))]
    files = [path for path in files if not path.is_dir()]
    for path in files:
        if path.suffix == ".ipynb" and path.is_relative_to(results):
            check_notebook(path, results.name)
    verify(results, whole=True, drawn=True)
    contents = {path.as_posix(): path for path in files}
    # Stored runs have ledgers in the archive.
    roots = {root.relative_to(Path.cwd()) for root in map(root_of, files) if root and root.is_relative_to(Path.cwd())}
    kept = {(root / MANIFEST).as_posix(): encode(excerpt(read_manifest(root), root, files)) for root in roots}
    write(output, contents | kept)


def replay(
    archive: Annotated[Path, typer.Argument(help="file of `make archive`")],
    output: Annotated[
        Path | None, typer.Option(help="folder to unpack into, which must not exist; default: a new one below build/")
    ] = None,
    cores: Annotated[int, typer.Option(help="notebooks that run at once")] = 1,
) -> None:
    """Judge the claims and draw tables and figures of an archive again, and compare; exit status 1 if one differs."""
    from replication.archives.replay import replay as again

    differing = again(archive, output or _new_folder(archive), cores, typer.echo)
    for name in differing:
        typer.secho(f"differs: {name}", fg="red", err=True)
    if differing:
        raise typer.Exit(1)
    typer.echo(f"{archive}: the ledger, every table and every figure are what they were")


def _new_folder(archive: Path) -> Path:
    """Return a folder below ``build/replayed`` that does not exist, named after an archive."""
    from itertools import count

    paths = (Path("build/replayed", archive.stem + (f"-{number}" if number > 1 else "")) for number in count(1))
    return next(path for path in paths if not path.exists())
