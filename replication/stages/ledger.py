"""Judge the claims and write the report."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import ConfigFile

Published = Annotated[Path, typer.Option(help="folder of the papers' printed tables, with claims.csv")]
Output = Annotated[Path, typer.Option(help="file to write")]
PUBLISHED = Path("config/published")


def configuration(config: ConfigFile, output: Output) -> None:
    """Write the configuration of a run beside its results, without the keys that say where it runs."""
    from replication.config import load

    write_configuration(load(config), output)


def write_configuration(run, output: Path) -> None:
    """Write a configuration as YAML, without the keys that say where it runs."""
    import yaml

    from replication.files.manifest import making
    from replication.files.storage import replacing

    settings = run.decisive()
    with making("configuration", settings), replacing(output) as temporary:
        temporary.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


def printed(output: Output, published: Published = PUBLISHED) -> None:
    """Judge the papers' printed numbers by the rules that judge measured ones."""
    import tempfile

    import pandas as pd

    from replication.claims.printed import ledger_of_papers
    from replication.files.storage import write_table

    with tempfile.TemporaryDirectory() as folder:
        table = ledger_of_papers(pd.read_csv(published / "claims.csv"), published, Path(folder))
    write_table(output, table)


def claims(
    results: Annotated[Path, typer.Argument(help="folder of a run, with a folder per task and config.yaml")],
    output: Output,
    published: Published = PUBLISHED,
) -> None:
    """Test the papers' claims on the results of a run."""
    import pandas as pd

    from replication.claims import ledger
    from replication.claims.stated import check_claims
    from replication.files.storage import write_table
    from replication.files.verification import verify

    # The report and its explorer are made after the ledger, so that old ones wait to be made again.
    verify(results, beside=["report.html", "explorer.html"])
    stated = pd.read_csv(published / "claims.csv")
    check_claims(stated, f"{published / 'claims.csv'}")
    write_table(output, ledger(stated, results))


def keep(results: Annotated[Path, typer.Argument(help="folder of a stored run, below reported/")]) -> None:
    """List the files of a stored run in its manifest, as they are now."""
    from replication.files.manifest import add_output
    from replication.files.schema import check_table, read_declared, table_at
    from replication.files.verification import files_of

    for path in files_of(results):
        if table_at(path):
            check_table(path, read_declared(path))
    for path in files_of(results):
        add_output(path)


def prune(
    results: Annotated[Path, typer.Argument(help="folder of a run")],
    yes: Annotated[bool, typer.Option("--yes", help="delete them without asking")] = False,
) -> None:
    """List the files of a run that its current configuration does not have, and delete them if you confirm it."""
    import sys

    from replication.files.verification import prune, unplanned

    files = unplanned(results)
    for path in files:
        typer.echo(path)
    if not files:
        typer.echo(f"{results}: has no files of another configuration")
    elif yes or (sys.stdin.isatty() and typer.confirm(f"Delete these {len(files)} files?")):
        prune(results, files)
    else:
        typer.echo("nothing is deleted; to delete these files without a question: --yes", err=True)


def report(
    results: Annotated[Path, typer.Argument(help="folder of a run, with claims.csv, figures and notebooks")],
    output: Output,
) -> None:
    """Write a page about a run, the attention explorer, and a page for each of its notebooks, beside the notebook."""
    from replication.files.runs import place_of
    from replication.files.storage import replacing
    from replication.files.verification import inputs, listed_files, verify
    from replication.report import EXPLORER, page
    from replication.report.explorer import explorer
    from replication.report.rendered import render
    from replication.run.layout import MaskedLM

    root = results.absolute().parents[1]
    if results.is_dir() and results.absolute() != root / "results" / results.name:
        raise ValueError(f"`results` must be the folder of a run below results/, got {results}")
    notebooks = listed_files(results / "notebooks", "**/*.ipynb")
    pages = [notebook.with_suffix(".html") for notebook in notebooks]
    passages = listed_files(results, MaskedLM(results / "masked_lm").passage.relative_to(results).as_posix())
    verify(results, whole=True, drawn=True, beside=[output.name, EXPLORER, *map(place_of, pages)])
    inputs(results / "claims.csv", *passages)
    for notebook, path in zip(notebooks, pages, strict=True):
        with replacing(path) as temporary:
            temporary.write_text(render(notebook), encoding="utf-8")
    for passage in passages:
        with replacing(results / EXPLORER) as temporary:
            temporary.write_text(
                explorer(passage.read_text(encoding="utf-8"), results.name, output.name), encoding="utf-8"
            )
    with replacing(output) as temporary:
        temporary.write_text(page(root, results.name), encoding="utf-8")
