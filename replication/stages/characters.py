"""Stages of character language modelling: text, models and n-grams."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import json_object, stage

Text = Annotated[Path, typer.Option(help="folder of characters: train.txt, valid.txt, test.txt")]
Output = Annotated[Path, typer.Option()]


def register(app: typer.Typer) -> None:
    for function in (characters, train_characters, character_baselines):
        app.command(function.__name__.replace("_", "-"))(stage(function))


def characters(
    source: Annotated[dict, typer.Option(parser=json_object, help='{"source": "grammar" | "text", ...}')],
    output: Annotated[Path, typer.Option(help="folder for train.txt, valid.txt, test.txt, and corpus.json about them")],
) -> None:
    """Write or read a text, and split it."""
    from replication.char_lm.corpus import read_corpus
    from replication.storage import replacing, write_json

    splits = read_corpus(source)
    for name, split in splits.items():
        with replacing(output / f"{name}.txt") as temporary:
            temporary.write_bytes(split.text)
    origins = {name: {"characters": len(split.text), "origin": split.origin} for name, split in splits.items()}
    write_json(output / "corpus.json", {"source": source, "splits": origins})


def train_characters(
    text: Text,
    settings: Annotated[
        dict, typer.Option(parser=json_object, help="architecture, top_k, and the architecture's sizes")
    ],
    recipe: Annotated[dict, typer.Option(parser=json_object, help="arguments of char_lm.training.Recipe")],
    rows: Annotated[
        dict, typer.Option(parser=json_object, help='streams read side by side: {"train", "valid", "test"}')
    ],
    seed: Annotated[int, typer.Option()],
    output: Annotated[Path, typer.Option(help="folder for the model, its log, and what it measures on the test text")],
) -> None:
    """Train a character model, and evaluate it; goes on where an interrupted run stopped."""
    import time

    import pandas as pd

    from replication.char_lm.data import read_streams
    from replication.char_lm.evaluation import evaluate
    from replication.char_lm.training import Recipe, checkpoint_of, train
    from replication.storage import hardware, provenance, write_json, write_table

    settings, plan = {"top_k": None} | settings, Recipe(**recipe)
    alphabet, streams = read_streams(text, rows, plan.length)
    goes_on = checkpoint_of(output).exists()
    start = time.perf_counter()
    model, log = train(settings, alphabet, streams["train"], streams["valid"], plan, seed, output)
    # What an interrupted run took before it stopped is not known.
    seconds = None if goes_on else time.perf_counter() - start
    measured = evaluate(model, streams["test"], plan.length)
    row = {
        "architecture": settings["architecture"],
        "top_k": settings["top_k"],
        "memory_length": model.memory_length,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "characters": streams["test"].characters(),
        "bits_per_character": measured.bits_per_character,
        "attended_positions": measured.attended_positions,
        **model.measurements(),
        "training_seconds": seconds,
        "device": hardware(),
    }
    write_table(output / "log.csv", log)
    write_table(output / "measured.csv", pd.DataFrame([row]))
    summary = {"settings": settings, "recipe": recipe, "rows": rows, "seed": seed, "train_runtime": seconds}
    write_json(output / "training.json", summary | provenance())


def character_baselines(text: Text, output: Output) -> None:
    """Bits per character of unigrams and bigrams, learned on the training text, on the test text."""
    import pandas as pd

    from replication.char_lm.data import Alphabet
    from replication.char_lm.evaluation import baselines
    from replication.storage import write_table

    train, test = ((text / f"{split}.txt").read_bytes() for split in ("train", "test"))
    alphabet = Alphabet.of(train)
    bits = baselines(alphabet.encode(train), alphabet.encode(test), len(alphabet))
    rows = [{"model": name, "bits_per_character": value, "characters": len(test) - 1} for name, value in bits.items()]
    write_table(output, pd.DataFrame(rows))
