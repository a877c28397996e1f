"""The masked language model."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Processes, Seed, Tokenizer, json_object


def train_masked_lm(
    tokens: Annotated[Path, typer.Option(help="training sequences")],
    tokenizer: Tokenizer,
    model: Annotated[dict, typer.Option(parser=json_object, help='{"pretrained": name} or sizes of a RobertaConfig')],
    training: Annotated[dict, typer.Option(parser=json_object, help="mask_probability, and TrainingArguments")],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for the model and its training log")],
    processes: Processes = 1,
) -> None:
    """Train a masked language model with entmax, from random weights or from a pretrained encoder."""
    from replication.training import is_first, see_one_gpu, start

    start(processes)
    see_one_gpu()
    import pandas as pd

    from replication.corpora.blocks import KIND
    from replication.corpora.tokens import load_tokenizer
    from replication.files.storage import provenance, read_tensors, write_json, write_table
    from replication.masked_lm.model import build_model, load_pretrained
    from replication.masked_lm.training import train
    from replication.training import remove_checkpoints, runtime

    input_ids = read_tensors(tokens, kind=KIND)["input_ids"]
    loaded = load_tokenizer(tokenizer)
    if "pretrained" in model:
        changes = {key: value for key, value in model.items() if key != "pretrained"}
        network = load_pretrained(model["pretrained"], seed, **changes)
    else:
        network = build_model(loaded, input_ids.shape[1], seed, **model)
    log = train(network, loaded, input_ids, output, seed=seed, **training)
    if not is_first():
        return
    steps = pd.DataFrame([entry for entry in log if "loss" in entry])
    steps = steps[["step", "epoch", "learning_rate", "loss"]]
    if "held_out" in training:
        held_out = pd.DataFrame([{"step": e["step"], "held_out_loss": e["eval_loss"]} for e in log if "eval_loss" in e])
        steps = steps.merge(held_out, on="step", how="outer")
    # A held-out loss is measured at checkpoints only.
    write_table(output / "training.csv", steps, may_be_empty=["held_out_loss"])
    summary = {
        "model": model,
        "architecture": {
            key: value for key, value in network.config.to_dict().items() if isinstance(value, int | float)
        },
        "training": training,
        "seed": seed,
        "sequences": len(input_ids),
        "length": input_ids.shape[1],
        "train_runtime": runtime(log),
    }
    write_json(output / "training.json", summary | provenance())
    remove_checkpoints(output)
