"""Translation with the attention forms of the companion papers."""

from pathlib import Path
from typing import Annotated

import typer

from sparselib.cli.options import json_object, stage
from sparselib.cli.translation import Data, References, Source, Target, Words


def register(app: typer.Typer) -> None:
    app.command("train-form")(stage(train_form))


def train_form(
    data: Data,
    source: Source,
    target: Target,
    references: References,
    architecture: Annotated[dict, typer.Option(parser=json_object, help="fairseq's options of the model")],
    training: Annotated[dict, typer.Option(parser=json_object, help="fairseq's options of training")],
    form: Annotated[
        str, typer.Option(help="Full, Block, Window, Dilated, Global, Random, BigBird, Top-k or Top-k OOW")
    ],
    seed: Annotated[int, typer.Option()],
    beam: Annotated[int, typer.Option()],
    words: Words,
    output: Annotated[Path, typer.Option(help="folder for the model and its measures")],
    budget: Annotated[int | None, typer.Option(help="attended positions of the form; Full needs none")] = None,
    alignment: Annotated[Path | None, typer.Option(help="gold word alignment of the test set, 0-0 1-2 a line")] = None,
    split: Annotated[str, typer.Option(help="what is measured on")] = "test",
    batch_tokens: Annotated[int, typer.Option()] = 4000,
) -> None:
    """Train a translator that attends by one form, and measure its BLEU, as trained and attending fully."""
    import time

    import pandas as pd

    from sparselib.corpora.alignment import from_pharaoh
    from sparselib.storage import provenance, write_json, write_table, write_tensors
    from sparselib.tasks.translation.cross_attention import describe
    from sparselib.tasks.translation.forms import FULL, attending_fully, form_options, measure
    from sparselib.tasks.translation.model import load_translator
    from sparselib.tasks.translation.training import FIXED, train

    settings = training | form_options(form, budget)
    links = alignment and [from_pharaoh(line) for line in alignment.read_text(encoding="utf-8").splitlines()]
    expected = references.read_text(encoding="utf-8").splitlines()
    start = time.perf_counter()
    log = train(data, source, target, architecture, settings, seed, output)
    seconds = time.perf_counter() - start
    translator = load_translator(output / "model.pt", data)
    rows = [{"tested_with": form} | measure(translator, split, expected, words, beam, batch_tokens)]
    if form != FULL:
        with attending_fully(translator):
            rows.append({"tested_with": FULL} | measure(translator, split, expected, words, beam, batch_tokens))
    cell = {"form": form, "budget": budget, "seed": seed}
    concentration, (number, shown) = describe(translator, split, links, batch_tokens)
    words_of = {"number": number, "source_words": shown.source, "target_words": shown.target}
    write_tensors(
        output / "map.safetensors", {"weights": shown.weights}, kind="cross-attention map", **cell, **words_of
    )
    write_table(output / "cross_attention.csv", concentration.assign(**cell))
    write_table(output / "training.csv", log)
    summary = {"architecture": architecture, "training": FIXED | settings, "seed": seed, "train_runtime": seconds}
    write_json(output / "training.json", summary | provenance())
    write_table(output / "measured.csv", pd.DataFrame(rows).assign(**cell))
