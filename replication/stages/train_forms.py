"""Translators with the attention forms of the companion papers."""

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

from replication.stages.options import Architecture, Data, Source, Target, Training, json_object


class Command(TyperCommand):
    """Names the forms when its help is shown, and not before: to import them is to import torch."""

    def format_help(self, ctx: typer.Context, formatter) -> None:
        from sparselib.forms import FORMS

        cell = next(parameter for parameter in self.params if parameter.name == "cell")
        cell.help = cell.help.replace("<forms>", ", ".join(FORMS))
        super().format_help(ctx, formatter)


def train_forms(
    data: Data,
    source: Source,
    target: Target,
    architecture: Architecture,
    training: Training,
    cell: Annotated[
        list[dict],
        typer.Option(
            parser=json_object,
            help='{"name": its folder, "form", "budget": attended positions, "seed"}, repeated for every model; form is one of '
            "<forms>; the budget of Full is null",
        ),
    ],
    output: Annotated[Path, typer.Option(help="folder for those of the models")],
) -> None:
    """Train translators that attend by one form each."""
    import time

    from replication.files.storage import provenance, write_json, write_table
    from replication.translation.forms import form_options
    from replication.translation.training import FIXED, train

    # All of them before the first training: a mistake in the last is told at once.
    every = [training | form_options(one["form"], one["budget"]) for one in cell]
    for one, settings in zip(cell, every, strict=True):
        folder = output / one["name"]
        start = time.perf_counter()
        log = train(data, source, target, architecture, settings, one["seed"], folder)
        write_table(folder / "training.csv", log)
        summary = {"architecture": architecture, "training": FIXED | settings, "seed": one["seed"]}
        write_json(folder / "training.json", summary | {"train_runtime": time.perf_counter() - start} | provenance())
