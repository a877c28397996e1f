"""Options that stages share, and the wrapper that turns errors about the input into one line."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from replication.files.seals import making, verified, verified_folder

ConfigFile = Annotated[Path, typer.Option("--config", help="configuration of the run, such as config/demo.yaml")]
GraphPlace = Annotated[str, typer.Argument(metavar="TASK", help="masked_lm, or a language pair: translation/en-de")]
TextPlace = Annotated[str, typer.Argument(metavar="PLACE", help="masked_lm, masked_lm/unseen/NAME or retrofit")]
PairPlace = Annotated[
    str,
    typer.Argument(
        metavar="PLACE",
        help="translation/en-de, translation/en-de/pretraining, forms/sentences/fr-en or normalizer_speed",
    ),
]
TranslatorPlace = Annotated[str, typer.Argument(metavar="TASK", help="translation/en-de")]
FormsPlace = Annotated[str, typer.Argument(metavar="PLACE", help="forms/sentences/fr-en")]
SymbolsPlace = Annotated[str, typer.Argument(metavar="PLACE", help="char_lm/CORPUS or patterns/KIND/CORPUS")]
ModelName = Annotated[str, typer.Option("--model", help="name of the model in the configuration")]
Cells = Annotated[list[str] | None, typer.Option("--cell", help="folder of a model; repeat; default: all of them")]
ModelSeed = Annotated[int, typer.Option("--seed", help="one of the seeds of the section")]
Threads = Annotated[int, typer.Option(min=1, help="threads of the CPU")]
Processes = Annotated[int, typer.Option(help="processes that share each batch, one per GPU")]


def stage(function: Callable) -> Callable:
    """Return a stage that seals its outputs and reports errors about its input in one line, with exit status 1."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        try:
            with making(function.__name__):
                return function(*args, **kwargs)
        except (ValueError, OSError) as error:
            typer.secho(f"error: {' '.join(str(error).split())}", fg="red", err=True)
            raise typer.Exit(1) from error

    return wrapped


def inputs(*paths: Path) -> None:
    """Verify the seals of a stage's input files and folders before any work starts.

    Raises
    ------
    FileNotFoundError
        If one of them does not exist.
    FormatError
        If one of them is not what its stage wrote.
    """
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file; run the stage that writes it first")
        if path.is_dir():
            verified_folder(path)
        else:
            verified(path)
