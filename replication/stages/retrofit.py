"""Sparsify a model without training it."""

from typing import Annotated

import typer

from replication.files.verification import inputs
from replication.stages.options import ConfigFile


def measure_rules(config: ConfigFile) -> None:
    """Measure recall, sparsity and drift of every selection rule of the grid, with students of every seed."""
    import pandas as pd

    from replication.files.storage import write_table
    from replication.results.settings import as_columns
    from replication.retrofit.measuring import measure
    from replication.retrofit.model import load_encoder
    from replication.retrofit.rules import clusters, fixed, learned
    from replication.retrofit.students import fit_students
    from replication.retrofit.text import batches, sequences
    from replication.run.places import retrofit
    from replication.steps import receive
    from sparselib.huggingface import use_attention
    from sparselib.huggingface.gold import gold_rule
    from sparselib.huggingface.layers import Layer, observed_layers
    from sparselib.normalizers import Entmax

    run = receive(config, "measure_rules")
    section, files = retrofit(run)
    model = _model(run)
    settings = section.given()
    inputs(files.tokens("train"), files.tokens("valid"))
    count, size, grid = settings["sequences"], settings["batch_size"], settings["rules"]
    text = sequences(files.tokens("train"), 0, count["learn"])
    held_out = sequences(files.tokens("valid"), 0, count["held_out"])
    network, normalizer, gold = load_encoder(model), Entmax(settings["alpha"]), gold_rule(settings["gold"])
    control = use_attention(network, normalizer, {"input_ids": text[:1].to(network.device)})
    batch_inputs = [{"input_ids": ids} for ids in batches(text, size)]
    layers = [Layer() for _ in range(control.layers)]
    calls = list(zip(*observed_layers(network, control, layers, gold, batch_inputs), strict=True))
    rules = list(fixed(grid, control.layers, settings["window"], settings["block"]))
    seconds = []
    for seed in run.student_seeds:
        students = [
            fit_students(
                list(of_layer), normalizer, block=settings["block"], seed=seed, **clusters(grid), **settings["students"],
            )
            for of_layer in calls
        ]  # fmt: skip
        rules += learned(grid, students, calls, settings["window"], settings["block"], seed)
        seconds += [{"seed": seed, "layer": layer} | student.seconds for layer, student in enumerate(students)]
    write_table(files.learning, pd.DataFrame(seconds))
    table = measure(network, control, rules, batches(held_out, size), gold)
    write_table(files.rules, as_columns(table))


def sparsify(config: ConfigFile, recall: Annotated[str, typer.Option(help="one of the section's recalls")]) -> None:
    """Tune every head to a target recall, save the heads' settings, and measure them on other text."""
    from replication.files.manifest import add_output
    from replication.files.storage import write_table
    from replication.results.settings import as_columns, label
    from replication.retrofit.measuring import measure
    from replication.retrofit.model import load_encoder
    from replication.retrofit.rules import SelectionRule
    from replication.retrofit.text import batches, drawn_sequences, sequences
    from replication.run.places import retrofit
    from replication.steps import receive
    from sparselib.huggingface import sparsify as tuned
    from sparselib.huggingface.gold import gold_rule

    run = receive(config, "sparsify", recall=recall)
    section, files = retrofit(run)
    recalls = {str(target): target for target in section.recalls}
    output, recall = files.sparsified(recall), recalls[recall]
    model, seed = _model(run), run.student_seeds[0]
    settings = section.given()
    inputs(files.tokens("train"), files.tokens("valid"))
    count, size = settings["sequences"], settings["batch_size"]
    text = drawn_sequences(files.tokens("train"), count["learn"], count["calibrate"], seed)
    held_out = sequences(files.tokens("valid"), 0, count["held_out"])
    batch_inputs = [{"input_ids": ids} for ids in batches(text, size)]
    network = load_encoder(model)
    sparse = tuned(
        network, batch_inputs, gold=settings["gold"], recall=recall, confidence=settings["confidence"],
        dimension=settings["students"]["dimension"], window=settings["window"], alpha=settings["alpha"], seed=seed,
    )  # fmt: skip
    sparse.save(output)
    add_output(output / "sparsified.safetensors")
    rule = SelectionRule("sparsified", label({"target": recall}), seed, sparse.graph)
    measured = measure(network, sparse.control, [rule], batches(held_out, size), gold_rule(settings["gold"]))
    write_table(output / "measured.parquet", as_columns(measured))


def _model(run) -> str:
    """Return the folder of the run's own masked language model, or the name of another model."""
    from replication.run.layout import MaskedLM, results_folder

    if run.retrofit.model != "masked_lm":
        return run.retrofit.model
    files = MaskedLM(results_folder(run.profile) / "masked_lm")
    inputs(files.model.parent)
    return str(files.model.parent)
