"""A model that describes images."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Pictures, RegionFeatures, Seed, json_object


def train_captioner(
    pictures: Pictures,
    regions: RegionFeatures,
    model: Annotated[dict, typer.Option(parser=json_object, help='{"top_k": 8}, or {} for softmax over all keys')],
    architecture: Annotated[dict, typer.Option(parser=json_object, help="sizes of a BartConfig")],
    limits: Annotated[dict, typer.Option(parser=json_object, help='{"word_count", "caption_words", "regions"}')],
    training: Annotated[dict, typer.Option(parser=json_object, help="TrainingArguments")],
    seed: Seed,
    output: Annotated[Path, typer.Option(help="folder for the model, its vocabulary and its training log")],
) -> None:
    """Train a captioner from random weights; goes on where an interrupted run stopped."""
    import pandas as pd

    from replication.captioning.batches import Captions
    from replication.captioning.model import build_model, settings_of
    from replication.captioning.pictures import load_pictures, regions_of
    from replication.captioning.training import train
    from replication.captioning.vocabulary import Vocabulary
    from replication.files.storage import provenance, write_json, write_table
    from replication.training import remove_checkpoints, runtime, see_one_gpu

    see_one_gpu()
    known, read = load_pictures(pictures / "train.jsonl"), regions_of(regions)
    vocabulary = Vocabulary.of((words for picture in known for words in picture.captions), limits["word_count"])
    sizes = {"region_count": limits["regions"], "region_width": read(known[0].image).shape[1]}
    sizes |= {"longest": limits["caption_words"], "top_k": settings_of(model)}
    network = build_model(len(vocabulary), seed=seed, **sizes, **architecture)
    log = train(network, Captions(known, vocabulary, limits["caption_words"]), read, output, seed=seed, **training)
    steps = pd.DataFrame([entry for entry in log if "loss" in entry])
    write_table(output / "training.csv", steps[["step", "epoch", "learning_rate", "loss"]])
    write_json(output / "vocabulary.json", list(vocabulary.words))
    summary = {
        "model": {"top_k": settings_of(model)},
        "architecture": architecture,
        "limits": limits,
        "training": training,
        "seed": seed,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "train_runtime": runtime(log),
    }
    write_json(output / "training.json", summary | provenance())
    remove_checkpoints(output)
