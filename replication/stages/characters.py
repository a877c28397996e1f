"""A text of characters, written or read."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import json_object


def characters(
    source: Annotated[dict, typer.Option(parser=json_object, help='{"source": "grammar" | "text", ...}')],
    output: Annotated[Path, typer.Option(help="folder for train.txt, valid.txt, test.txt, and corpus.json about them")],
) -> None:
    """Write or read a text, and split it."""
    from replication.char_lm.corpus import read_corpus
    from replication.files.storage import replacing, write_json

    splits = read_corpus(source)
    for name, split in splits.items():
        with replacing(output / f"{name}.txt") as temporary:
            temporary.write_bytes(split.text)
    origins = {name: {"characters": len(split.text), "origin": split.origin} for name, split in splits.items()}
    write_json(output / "corpus.json", {"source": source, "splits": origins})
