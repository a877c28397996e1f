"""Stages of the masked-LM task that need the model itself."""

from pathlib import Path
from typing import Annotated

import typer

from sparselib.cli.options import json_object, stage


def register(app: typer.Typer) -> None:
    app.command("train-masked-lm")(stage(train_masked_lm))


def train_masked_lm(
    tokens: Annotated[Path, typer.Option(help="training sequences")],
    tokenizer: Annotated[Path, typer.Option(help="folder of the tokenizer")],
    model: Annotated[dict, typer.Option(parser=json_object, help='{"pretrained": name} or sizes of a RobertaConfig')],
    training: Annotated[dict, typer.Option(parser=json_object, help="mask_probability, and TrainingArguments")],
    seed: Annotated[int, typer.Option()],
    output: Annotated[Path, typer.Option(help="folder for the model and its training log")],
) -> None:
    """Train an entmax RoBERTa, from random weights or from a pretrained checkpoint."""
    import pandas as pd

    from sparselib.corpora.tokens import KIND, load_tokenizer
    from sparselib.storage import provenance, read_tensors, write_json, write_table
    from sparselib.tasks import masked_lm

    input_ids = read_tensors(tokens, kind=KIND)["input_ids"]
    loaded = load_tokenizer(tokenizer)
    if "pretrained" in model:
        network = masked_lm.load_model(model["pretrained"])
    else:
        network = masked_lm.build_model(loaded, input_ids.shape[1], seed, **model)
    log = masked_lm.train(network, loaded, input_ids, output, seed=seed, **training)
    steps = pd.DataFrame([entry for entry in log if "loss" in entry])
    write_table(output / "training.csv", steps[["step", "epoch", "learning_rate", "loss"]])
    summary = log[-1] | {"sequences": len(input_ids), "length": input_ids.shape[1]}
    write_json(output / "training.json", {"model": model, "training": training, "seed": seed} | summary | provenance())
