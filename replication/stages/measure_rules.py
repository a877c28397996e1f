"""Rules that select what to attend to, on a model that is not trained for them."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Output, Retrofit, RetrofitModel, Seeds


def measure_rules(
    model: RetrofitModel,
    train: Annotated[Path, typer.Option(help="sequences to learn from")],
    valid: Annotated[Path, typer.Option(help="sequences to measure on")],
    settings: Retrofit,
    seed: Seeds,
    output: Output,
    learning: Annotated[Path, typer.Option(help="table of the seconds that learning took")],
) -> None:
    """Recall, sparsity and drift of every rule of the grid, with students of every seed."""
    import pandas as pd

    from replication.files.storage import write_table
    from replication.retrofit.measuring import measure
    from replication.retrofit.model import load_encoder
    from replication.retrofit.rules import clusters, fixed, learned
    from replication.retrofit.students import fit_students
    from replication.retrofit.text import batches, sequences
    from sparselib.huggingface import use_attention
    from sparselib.huggingface.gold import gold_rule
    from sparselib.huggingface.layers import Layer, shown
    from sparselib.normalizers import Entmax

    count, size, grid = settings["sequences"], settings["batch_size"], settings["rules"]
    text = sequences(train, 0, count["learn"])
    held_out = sequences(valid, 0, count["held_out"])
    network, normalizer, gold = load_encoder(model), Entmax(settings["alpha"]), gold_rule(settings["gold"])
    control = use_attention(network, normalizer, {"input_ids": text[:1].to(network.device)})
    inputs = [{"input_ids": ids} for ids in batches(text, size)]
    layers = [Layer() for _ in range(control.layers)]
    looked_at = list(zip(*shown(network, control, layers, gold, inputs), strict=True))
    rules = list(fixed(grid, control.layers, settings["window"], settings["block"]))
    seconds = []
    for one in seed:
        students = [
            fit_students(
                list(of_layer), normalizer, clusters=clusters(grid, "Clustering"),
                block_clusters=clusters(grid, "ClusteredBlocks"), block=settings["block"], seed=one, **settings["students"],
            )
            for of_layer in looked_at
        ]  # fmt: skip
        rules += learned(grid, students, settings["window"], settings["block"], one)
        seconds += [{"seed": one, "layer": layer} | of_layer.seconds for layer, of_layer in enumerate(students)]
    write_table(learning, pd.DataFrame(seconds))
    write_table(output, measure(network, control, rules, batches(held_out, size), gold))
