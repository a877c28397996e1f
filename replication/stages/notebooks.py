"""Execute notebooks."""

from pathlib import Path
from typing import Annotated

import typer

Values = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="parameter of the notebook; repeat for several")
]
#: Errors of a notebook about its input, whose message says all.
IN_ONE_LINE = ("NoResults", "FormatError", "OSError", "FileNotFoundError", "PermissionError")


def draw(
    notebook: Annotated[Path, typer.Argument(help="notebook of this repository")],
    output: Annotated[Path, typer.Argument(help="notebook to write")],
    values: Values = None,
    results: Annotated[Path | None, typer.Option(help="folder of the run whose manifest lists the output")] = None,
) -> None:
    """Execute a notebook with parameters, such as `profile=brown`, and store it with its outputs."""
    import os
    import sys

    from papermill import PapermillExecutionError, execute_notebook

    from replication.files.paths import DRAWING
    from replication.jupyter import kernel_environment, parameters_of

    given = parameters_of(notebook, values or [])
    os.environ.update(kernel_environment())
    if results is not None:
        os.environ[DRAWING] = str(results)
    try:
        execute_notebook(str(notebook), str(output), given, progress_bar=False)
    except PapermillExecutionError as error:
        if error.ename not in IN_ONE_LINE:
            print("\n".join(error.traceback), file=sys.stderr)
        message = error.evalue if error.ename in IN_ONE_LINE else f"{error.ename} in cell {error.exec_count}"
        raise ValueError(f"{notebook}: {message}") from error
    finally:
        os.environ.pop(DRAWING, None)
    if results is not None:
        add_to_run(results, output)


def add_to_run(results: Path, notebook: Path) -> None:
    """List a notebook that was executed for a run, and its figure, in the run's manifest."""
    from replication.files.manifest import add_output
    from replication.report.checks import check_notebook

    check_notebook(notebook, results.name)
    figure = results / "figures" / notebook.relative_to(results / "notebooks")
    for path in (notebook, *(figure.with_suffix(suffix) for suffix in (".svg", ".pdf"))):
        add_output(path)
