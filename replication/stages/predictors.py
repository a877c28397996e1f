"""Check a predictor of your own."""

from typing import Annotated

import typer


def check(
    predictor: Annotated[str, typer.Argument(help="file or module and class, such as landmarks.py:Landmarks")],
    values: Annotated[
        list[str] | None, typer.Option("--set", help="argument of the class, as NAME=VALUE; repeat")
    ] = None,
) -> None:
    """Check the laws that every predictor obeys, on random queries and keys."""
    import torch
    import yaml

    from replication.laws import DIMENSION, HEADS, broken_laws
    from replication.own_predictors import own_class, unfit_arguments

    given = {name: yaml.safe_load(value) for name, _, value in (pair.partition("=") for pair in values or [])}
    if unfit := [f"{key}: {what}" for key, what in unfit_arguments(predictor, given)]:
        raise ValueError("; ".join(unfit))
    of = own_class(predictor)
    if of.needs.centroids:
        generator = torch.Generator().manual_seed(0)
        given["centroids"] = torch.randn(HEADS, given.pop("clusters"), DIMENSION, generator=generator)
    if of.needs.seed:
        given["seed"] = 0
    if broken := broken_laws(of(**given)):
        raise ValueError("\n".join(broken))
    typer.echo(f"{predictor} obeys the laws of predictors")
