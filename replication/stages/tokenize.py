"""From a corpus to blocks of subword ids."""

from pathlib import Path
from typing import Annotated

import typer


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
