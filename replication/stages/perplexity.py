"""How well the masked language model predicts."""

import math
from pathlib import Path
from typing import Annotated

import typer

from replication.stages.loading import load_network, masked_text
from replication.stages.options import Masking, Model, Output, Tokenizer

#: Names of a masked language model's architecture in tables.
NAMES = {"roberta": "RoBERTa", "bert": "BERT"}


def perplexity(
    model: Model,
    tokenizer: Tokenizer,
    train_tokens: Annotated[Path, typer.Option(help="what the n-gram models learn from")],
    tokens: Annotated[list[Path], typer.Option(help="sequences to evaluate on; repeat for several corpora")],
    name: Annotated[list[str], typer.Option(help="a name for each of them, in the same order")],
    masking: Masking,
    output: Output,
) -> None:
    """Perplexity of the model, of unigrams and of bigrams, on the same masked tokens of each corpus."""
    import pandas as pd

    from replication.corpora.blocks import KIND
    from replication.files.storage import read_tensors, write_table
    from replication.masked_lm import evaluation

    network, _, loaded = load_network(model, tokenizer)
    train_ids = read_tensors(train_tokens, kind=KIND)["input_ids"]
    rows = []
    for path, corpus in zip(tokens, name, strict=True):
        text = masked_text(path, loaded, masking | {"sequences": None})
        nats = evaluation.baseline_cross_entropies(train_ids, text, len(loaded))
        nats[f"entmax {NAMES[network.config.model_type]}"] = evaluation.cross_entropy(
            network, text, masking["batch_size"]
        )
        places = int((text.labels >= 0).sum())
        rows += [
            {"corpus": corpus, "model": key, "nats": value, "masked_tokens": places} for key, value in nats.items()
        ]
    table = pd.DataFrame(rows)
    table["perplexity"] = table["nats"].map(math.exp)
    write_table(output, table)
