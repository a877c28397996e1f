"""Stages from a corpus to blocks of subword ids."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import json_object, stage

SPLITS = ("train", "valid", "test")


def register(app: typer.Typer) -> None:
    app.command("corpus")(stage(corpus))
    app.command("tokenize")(stage(tokenize))


def corpus(
    source: Annotated[dict, typer.Option(parser=json_object, help='{"source": "grammar" | "folder" | "hub", ...}')],
    split: Annotated[list[str], typer.Option(help="repeat for several splits")],
    output: Annotated[Path, typer.Option(help="folder for one parquet file per split")],
    tag: Annotated[list[str] | None, typer.Option(help="splits to tag where they have no gold tags")] = None,
) -> None:
    """Write or read a corpus: documents, sentences, words, and their annotation where there is any."""
    from replication.corpora.sources import read_splits
    from replication.corpora.table import write_documents

    for name, documents in read_splits(source, split).items():
        tag_source = "gold"
        if name in (tag or []):
            from replication.corpora.tagging import with_tags

            documents, tag_source = with_tags(documents)
        write_documents(output / f"{name}.parquet", documents, tag_source)


def tokenize(
    corpus: Annotated[list[Path], typer.Option(help="parquet files of the corpus stage; the first is for training")],
    length: Annotated[int, typer.Option(help="tokens per sequence, <s> and </s> included")],
    output: Annotated[Path, typer.Option(help="folder for one safetensors file per corpus file")],
    tokenizer: Annotated[Path, typer.Option(help="folder of the tokenizer: read if --vocab-size is 0, else written")],
    vocab_size: Annotated[int, typer.Option(help="learn a BPE of this size on the first file")] = 0,
    pretrained: Annotated[str, typer.Option(help="take this tokenizer (hub name or folder) instead")] = "",
) -> None:
    """Cut each corpus into sequences of subword ids, with tags and coreference chains beside them."""
    from replication.corpora import tokens
    from replication.corpora.table import read_documents, read_tag_source

    if vocab_size:
        fitted = tokens.train_tokenizer(read_documents(corpus[0]), vocab_size)
    else:
        fitted = tokens.load_tokenizer(pretrained or tokenizer)
    for path in corpus:
        blocks, header = tokens.encode_blocks(read_documents(path), fitted, length)
        header["tag_source"] = read_tag_source(path)
        tokens.write_blocks(output / f"{path.stem}.safetensors", blocks, header)
    if vocab_size or pretrained:
        tokens.save_tokenizer(fitted, tokenizer)
