"""Pictures with captions, drawn or read."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import json_object


def pictures(
    source: Annotated[dict, typer.Option(parser=json_object, help='{"source": "scenes" | "karpathy", ...}')],
    output: Annotated[
        Path, typer.Option(help="folder for train.jsonl and test.jsonl, and regions.npz of drawn scenes")
    ],
) -> None:
    """Draw scenes, or read Karpathy's splits of COCO and look whether every image has its features."""
    from replication.captioning.pictures import read_pictures, write_features, write_pictures
    from replication.files.storage import write_json

    splits, features = read_pictures(source)
    for name, split in splits.items():
        write_pictures(output / f"{name}.jsonl", split)
    if features:
        write_features(output / "regions.npz", features)
    counts = {name: {"images": len(split), "captions": sum(len(one.captions) for one in split)}
              for name, split in splits.items()}  # fmt: skip
    write_json(output / "pictures.json", {"source": source, "splits": counts})
