"""Start, check and store predictors of your own."""

from typing import Annotated

import typer

from replication.stages.options import ConfigFile


def init(name: Annotated[str, typer.Argument(help="name of the method, such as my-idea")]) -> None:
    """Write a predictor and a profile with it into this folder; both run as they are."""
    from pathlib import Path

    from replication.predictors.starter import commands, start

    written = " and ".join(path.name for path in start(name, Path()))
    typer.echo(
        "\n  ".join([f"{written} are written. Check the predictor, draw Figure 4, archive the run:", *commands(name)])
    )


def check(
    predictor: Annotated[str, typer.Argument(help="file or module and class, such as landmarks.py:Landmarks")],
    values: Annotated[
        list[str] | None, typer.Option("--set", help="argument of the class, as NAME=VALUE; repeat")
    ] = None,
) -> None:
    """Check the laws that every predictor obeys, on random queries and keys."""
    import torch
    import yaml

    from replication.predictors.laws import DIMENSION, HEADS, LENGTHS, broken_laws, drawn
    from replication.predictors.own_predictors import fits, own_class, unfit_arguments
    from sparselib.projections import Batch

    given = {name: yaml.safe_load(value) for name, _, value in (pair.partition("=") for pair in values or [])}
    if unfit := [f"{key}: {what}" for key, what in unfit_arguments(predictor, given)]:
        raise ValueError("; ".join(unfit))
    of = own_class(predictor)
    if fits(of):
        batch = Batch(*drawn(dtype=torch.float32), torch.tensor(LENGTHS))
        checked = of.fit([batch], torch.nn.Identity(), 0, **given)
    else:
        if of.needs.centroids:
            generator = torch.Generator().manual_seed(0)
            given["centroids"] = torch.randn(HEADS, given.pop("clusters"), DIMENSION, generator=generator)
        if of.needs.seed:
            given["seed"] = 0
        checked = of(**given)
    if broken := broken_laws(checked):
        raise ValueError("\n".join(broken))
    typer.echo(f"{predictor} obeys the laws of predictors")


def store_predictor(
    predictor: Annotated[str, typer.Option(help="file or module and class, such as landmarks.py:Landmarks")],
    config: ConfigFile,
) -> None:
    """Copy the file of an own predictor into the run's folder, for archives and stored runs."""
    from replication.files.storage import replacing
    from replication.predictors.own_predictors import own_file, stored_name
    from replication.run.layout import results_folder
    from replication.steps import receive

    run = receive(config, "store_predictor", predictor=predictor)
    with replacing(results_folder(run.profile) / "predictors" / stored_name(predictor)) as temporary:
        temporary.write_bytes(own_file(predictor).read_bytes())
