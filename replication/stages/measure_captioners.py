"""What captioners say of the test images."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import Pictures, RegionFeatures, json_object


def measure_captioners(
    pictures: Pictures,
    regions: RegionFeatures,
    model: Annotated[list[Path], typer.Option(help="folder of train-captioner; repeat for several models")],
    decoding: Annotated[dict, typer.Option(parser=json_object, help='{"beam", "batch_size"}')],
    shown: Annotated[int, typer.Option(help="first test images whose attention is stored")],
) -> None:
    """Describe the test images; captions.parquet, attention.parquet and measured.csv go into the folder of each model."""
    import json

    import pandas as pd

    from replication.captioning.evaluation import attended_regions, describe, measured
    from replication.captioning.model import load_model
    from replication.captioning.pictures import load_pictures, regions_of
    from replication.captioning.scores import corpus
    from replication.captioning.vocabulary import Vocabulary
    from replication.files.storage import write_table

    test, read = load_pictures(pictures / "test.jsonl"), regions_of(regions)
    for folder in model:
        run = json.loads((folder / "training.json").read_text())
        vocabulary = Vocabulary(tuple(json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))))
        loaded, longest = load_model(folder), run["limits"]["caption_words"]
        said = describe(loaded, vocabulary, read, [one.image for one in test], decoding | {"longest": longest})
        table = measured(test, said)
        maps = [attended_regions(loaded, vocabulary, read, picture, longest) for picture in test[:shown]]
        row = {
            "top_k": run["model"]["top_k"],
            "parameters": run["parameters"],
            "images": len(test),
            **corpus(table),
            "cider_of_other": table["cider_of_other"].mean(),
            "training_seconds": run["train_runtime"],
            "device": run["hardware"],
        }
        write_table(folder / "captions.parquet", table)
        write_table(folder / "attention.parquet", pd.concat(maps, ignore_index=True))
        write_table(folder / "measured.csv", pd.DataFrame([row]), may_be_empty=["top_k"])
