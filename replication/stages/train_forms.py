"""Translation with the attention forms of the companion papers."""

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

from replication.stages.options import (
    Architecture,
    BatchTokens,
    Beam,
    Data,
    References,
    Source,
    Target,
    Training,
    Words,
    json_object,
)


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
    references: References,
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
    beam: Beam,
    words: Words,
    output: Annotated[Path, typer.Option(help="folder for those of the models and their measures")],
    alignment: Annotated[Path | None, typer.Option(help="gold word alignment of the test set, 0-0 1-2 a line")] = None,
    split: Annotated[str, typer.Option(help="what is measured on")] = "test",
    batch_tokens: BatchTokens = 4000,
) -> None:
    """Train translators that attend by one form each, and measure their BLEU, as trained and attending fully."""
    import time

    import pandas as pd

    from replication.corpora.alignment import from_pharaoh
    from replication.storage import provenance, write_json, write_table, write_tensors
    from replication.translation.cross_attention import describe
    from replication.translation.forms import FULL, attending_fully, form_options, measure
    from replication.translation.model import load_translator
    from replication.translation.training import FIXED, train

    links = alignment and [from_pharaoh(line) for line in alignment.read_text(encoding="utf-8").splitlines()]
    expected = references.read_text(encoding="utf-8").splitlines()
    # All of them before the first training: a mistake in the last is told at once.
    every = [training | form_options(one["form"], one["budget"]) for one in cell]
    for one, settings in zip(cell, every, strict=True):
        folder, own = output / one["name"], {key: one[key] for key in ("form", "budget", "seed")}
        start = time.perf_counter()
        log = train(data, source, target, architecture, settings, own["seed"], folder)
        seconds = time.perf_counter() - start
        translator = load_translator(folder / "model.pt", data)
        tested = {own["form"]: measure(translator, split, expected, words, beam, batch_tokens)}
        if own["form"] != FULL:
            with attending_fully(translator):
                tested[FULL] = measure(translator, split, expected, words, beam, batch_tokens)
        rows = [{"tested_with": form} | row for form, (row, _) in tested.items()]
        counts = [counts.assign(tested_with=form, **own) for form, (_, counts) in tested.items()]
        concentration, (number, shown) = describe(translator, split, links, batch_tokens)
        header = {"number": number, "source_words": shown.source, "target_words": shown.target} | own
        write_tensors(folder / "map.safetensors", {"weights": shown.weights}, kind="cross-attention map", **header)
        write_table(folder / "cross_attention.csv", concentration.assign(**own))
        write_table(folder / "sentences.parquet", pd.concat(counts, ignore_index=True))
        write_table(folder / "training.csv", log)
        summary = {"architecture": architecture, "training": FIXED | settings, "seed": own["seed"]}
        write_json(folder / "training.json", summary | {"train_runtime": seconds} | provenance())
        write_table(folder / "measured.csv", pd.DataFrame(rows).assign(**own))
