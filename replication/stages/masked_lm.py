"""Stages of the masked-LM task that need the model itself."""

import math
from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import json_object, stage

Model = Annotated[Path, typer.Option(help="folder of the trained model")]
Tokenizer = Annotated[Path, typer.Option(help="folder of the tokenizer")]
Masking = Annotated[
    dict, typer.Option(parser=json_object, help='{"mask_probability", "seed", "batch_size", "sequences"}')
]


def register(app: typer.Typer) -> None:
    for function in (train_masked_lm, perplexity, extract, replace):
        app.command(function.__name__.replace("_", "-"))(stage(function))


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

    from replication.corpora.blocks import KIND
    from replication.corpora.tokens import load_tokenizer
    from replication.masked_lm.model import build_model, load_model
    from replication.masked_lm.training import train
    from replication.storage import provenance, read_tensors, write_json, write_table

    input_ids = read_tensors(tokens, kind=KIND)["input_ids"]
    loaded = load_tokenizer(tokenizer)
    if "pretrained" in model:
        network = load_model(model["pretrained"])
    else:
        network = build_model(loaded, input_ids.shape[1], seed, **model)
    log = train(network, loaded, input_ids, output, seed=seed, **training)
    steps = pd.DataFrame([entry for entry in log if "loss" in entry])
    write_table(output / "training.csv", steps[["step", "epoch", "learning_rate", "loss"]])
    summary = {
        "model": model,
        "architecture": {
            key: value for key, value in network.config.to_dict().items() if isinstance(value, int | float)
        },
        "training": training,
        "seed": seed,
        "sequences": len(input_ids),
        "length": input_ids.shape[1],
        "train_runtime": log[-1]["train_runtime"],
    }
    write_json(output / "training.json", summary | provenance())


def perplexity(
    model: Model,
    tokenizer: Tokenizer,
    train_tokens: Annotated[Path, typer.Option(help="what the n-gram models learn from")],
    tokens: Annotated[list[Path], typer.Option(help="sequences to evaluate on; repeat for several corpora")],
    name: Annotated[list[str], typer.Option(help="a name for each of them, in the same order")],
    masking: Masking,
    output: Annotated[Path, typer.Option()],
) -> None:
    """Perplexity of the model, of unigrams and of bigrams, on the same masked tokens of each corpus."""
    import pandas as pd

    from replication.corpora.blocks import KIND
    from replication.masked_lm import evaluation
    from replication.storage import read_tensors, write_table

    network, _, loaded = load_network(model, tokenizer)
    train_ids = read_tensors(train_tokens, kind=KIND)["input_ids"]
    rows = []
    for path, corpus in zip(tokens, name, strict=True):
        text = masked_text(path, loaded, masking | {"sequences": None})
        nats = evaluation.baseline_cross_entropies(train_ids, text, len(loaded))
        nats["entmax RoBERTa"] = evaluation.cross_entropy(network, text, masking["batch_size"])
        places = int((text.labels >= 0).sum())
        rows += [
            {"corpus": corpus, "model": key, "nats": value, "masked_tokens": places} for key, value in nats.items()
        ]
    table = pd.DataFrame(rows)
    table["perplexity"] = table["nats"].map(math.exp)
    write_table(output, table)


def extract(
    model: Model,
    tokens: Annotated[Path, typer.Option(help="sequences of one split")],
    sequences: Annotated[int, typer.Option(help="how many of them, drawn at random")],
    seed: Annotated[int, typer.Option()],
    output: Annotated[Path, typer.Option(help="folder for one file of attention graphs per layer")],
    batch_size: Annotated[int, typer.Option()] = 8,
) -> None:
    """Store the queries and keys of every layer, from which the gold attention graphs follow."""
    from replication.corpora.blocks import KIND
    from replication.graphs.shards import sample_sequences
    from replication.masked_lm.evaluation import extract_graphs
    from replication.masked_lm.model import load_entmax_model
    from replication.storage import read_tensors

    input_ids = read_tensors(tokens, kind=KIND)["input_ids"]
    network, control = load_entmax_model(model)
    extract_graphs(network, control, input_ids, sample_sequences(len(input_ids), sequences, seed), output, batch_size)


def replace(
    model: Model,
    tokenizer: Tokenizer,
    tokens: Annotated[Path, typer.Option(help="validation sequences")],
    projection: Annotated[list[Path], typer.Option(help="one per layer, in order")],
    centroids: Annotated[list[Path], typer.Option(help="one per layer, in order")],
    methods: Annotated[dict, typer.Option(parser=json_object, help="the grid: {method: {predictor, arguments}}")],
    window: Annotated[list[int], typer.Option(help="repeat for every window width; 0 is none")],
    global_tokens: Annotated[str, typer.Option(help="none, first or first_last")],
    masking: Masking,
    seed: Annotated[int, typer.Option()],
    output: Annotated[Path, typer.Option()],
) -> None:
    """Perplexity with predicted graphs in place of the true ones, in all layers and heads at once."""
    from replication.graphs import projections
    from replication.graphs.centroids import load
    from replication.graphs.grids import expand
    from replication.graphs.replaced import Replacements
    from replication.masked_lm.evaluation import evaluate_replaced
    from replication.storage import write_table

    network, control, loaded = load_network(model, tokenizer)
    table = evaluate_replaced(
        network,
        control,
        masked_text(tokens, loaded, masking),
        Replacements(
            [projections.load(path) for path in projection],
            [load(path) for path in centroids],
            expand(methods),
            window,
            global_tokens,
            seed * 1000,
        ),
        masking["batch_size"],
    )
    table.insert(0, "seed", seed)
    write_table(output, table.assign(global_tokens=global_tokens))


def load_network(model: Path, tokenizer: Path):
    """The model, the control of its attention, and its tokenizer."""
    from replication.corpora.tokens import load_tokenizer
    from replication.masked_lm.model import load_entmax_model

    return *load_entmax_model(model), load_tokenizer(tokenizer)


def masked_text(tokens: Path, tokenizer, masking: dict):
    """The first sequences, with the places to predict."""
    from replication.corpora.blocks import KIND
    from replication.masked_lm.evaluation import mask_text
    from replication.storage import read_tensors

    input_ids = read_tensors(tokens, kind=KIND)["input_ids"][: masking["sequences"]]
    return mask_text(input_ids, tokenizer, masking["mask_probability"], masking["seed"])
