"""Options that stages share, and the wrapper that turns errors about the input into one line."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from replication.files.manifest import making

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
Methods = Annotated[list[str] | None, typer.Option("--method", help="method of the grid; repeat; default: all of them")]
ModelSeed = Annotated[int, typer.Option("--seed", help="one of the seeds of the section")]
Threads = Annotated[int, typer.Option(min=1, envvar="REPLICATE_THREADS", help="threads of the CPU")]
Processes = Annotated[int, typer.Option(envvar="REPLICATE_GPUS", help="processes that share each batch, one per GPU")]
#: Prefixes of the arguments, and of the options, that say what a stage makes, by their names.
PREFIXES = dict.fromkeys(("place", "task", "names", "notebook"), "")
PREFIXES |= {name: f"--{name} " for name in ("model", "seed", "cell", "recall", "method", "predictor")} | {
    "values": "--set "
}


def stage(function: Callable) -> Callable:
    """Return a stage that lists its outputs and reports errors about its input in one line, with exit status 1."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        try:
            with making(command_of(function, kwargs), settings_of(kwargs)):
                return function(*args, **kwargs)
        except (ValueError, OSError) as error:
            typer.secho(f"error: {' '.join(about_texts(error, kwargs).split())}", fg="red", err=True)
            raise typer.Exit(1) from error

    return wrapped


def about_texts(error: Exception, arguments: dict[str, object]) -> str:
    """Return an error's message, with the user's file if the error is about the text of a run's file."""
    from replication.config import ConfigurationError
    from replication.files.storage import FormatError

    message, config = words_of(error), arguments.get("config")
    if config is None or isinstance(error, OSError | ConfigurationError | FormatError):
        return message
    from replication.config import load
    from replication.corpora.origins import with_origin

    try:
        return with_origin(message, load(config))
    except ValueError:  # about the user's files, as the message itself
        return message


def words_of(error: Exception) -> str:
    """Return an error's message; the system's own errors name their file first, without a number.

    Examples
    --------
    >>> words_of(FileNotFoundError(2, "No such file or directory", "run.zip"))
    'run.zip: no such file or directory'
    """
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


def command_of(function: Callable, arguments: dict[str, object]) -> str:
    """Return the command of a stage, without the options that do not change its results."""
    words = [function.__name__.replace("_", "-")]
    for name, given in arguments.items():
        prefix = PREFIXES.get(name)
        if prefix is not None and given is not None:
            words += [f"{prefix}{value}" for value in (given if isinstance(given, list) else [given])]
    return " ".join(words)


def settings_of(arguments: dict[str, object]) -> dict[str, object] | None:
    """Return the configuration of a stage as plain JSON, or None for a stage without one."""
    if "config" not in arguments:
        return None
    from replication.config import load

    return load(arguments["config"]).decisive()
