"""A model, each head of which is tuned to a recall target."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Retrofit, RetrofitModel, Seed


def sparsify(
    model: RetrofitModel,
    train: Annotated[Path, typer.Option(help="sequences to tune on")],
    valid: Annotated[Path, typer.Option(help="sequences to measure on")],
    settings: Retrofit,
    recall: Annotated[float, typer.Option(help="the target")],
    seed: Seed,
    output: Annotated[
        Path, typer.Option(help="folder for sparsified.json, sparsified.safetensors and measured.parquet")
    ],
) -> None:
    """Tune every head to the target, save how, and measure it on other text."""
    import json

    from replication.files.storage import write_table
    from replication.retrofit.measuring import measure
    from replication.retrofit.model import load_encoder
    from replication.retrofit.rules import Rule
    from replication.retrofit.text import batches, sequences
    from sparselib.huggingface import sparsify as tuned
    from sparselib.huggingface.gold import gold_rule

    count, size = settings["sequences"], settings["batch_size"]
    text = sequences(train, count["learn"], count["calibrate"])
    held_out = sequences(valid, 0, count["held_out"])
    inputs = [{"input_ids": ids} for ids in batches(text, size)]
    network = load_encoder(model)
    sparse = tuned(
        network, inputs, gold=settings["gold"], recall=recall, confidence=settings["confidence"],
        dimension=settings["students"]["dimension"], window=settings["window"], alpha=settings["alpha"], seed=seed,
    )  # fmt: skip
    sparse.save(output)
    rule = Rule("sparsified", json.dumps({"recall": recall}), seed, sparse.graph)
    measured = measure(network, sparse.control, [rule], batches(held_out, size), gold_rule(settings["gold"]))
    write_table(output / "measured.parquet", measured)
