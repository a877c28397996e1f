"""What the subcommands share: options that hold JSON, and errors that name what is wrong without a traceback."""

import functools
import json
from collections.abc import Callable

import typer


def json_object(text: str) -> dict:
    """A section of the configuration, passed on the command line as a JSON object."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise typer.BadParameter(f"a JSON object expected, got {text}")
    return value


def stage(function: Callable) -> Callable:
    """Turn errors about the input into one line on standard error and exit status 1."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (ValueError, OSError) as error:
            typer.secho(f"error: {' '.join(str(error).split())}", fg="red", err=True)
            raise typer.Exit(1) from error

    return wrapped
