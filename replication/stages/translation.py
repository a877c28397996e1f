"""Stages of machine translation; they run fairseq."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import json_object, stage

Source = Annotated[str, typer.Option("--from", help="source language")]
Target = Annotated[str, typer.Option("--to", help="target language")]
Model = Annotated[Path, typer.Option(help="model.pt of train-translation")]
Data = Annotated[Path, typer.Option(help="folder of binarize")]
References = Annotated[Path, typer.Option(help="text of the target side, a sentence per line")]
Words = Annotated[str, typer.Option(help="moses or spaces: how text becomes words")]


def register(app: typer.Typer) -> None:
    for function in (parallel_corpus, binarize, train_translation, extract_decoder, bleu, decode):
        app.command(function.__name__.replace("_", "-"))(stage(function))


def parallel_corpus(
    source: Annotated[dict, typer.Option(parser=json_object, help='{"source": "grammar" | "folder" | "hub", ...}')],
    split: Annotated[list[str], typer.Option(help="repeat for several splits")],
    language: Annotated[list[str], typer.Option(help="repeat for every language")],
    output: Annotated[Path, typer.Option(help="folder for <split>.<language>")],
    block_words: Annotated[int | None, typer.Option(help="join a document's sentences up to so many words")] = None,
    align: Annotated[
        list[str] | None, typer.Option(help="splits whose word alignment to write, if it is known")
    ] = None,
) -> None:
    """Write or read aligned sentences, or blocks of them, one plain text file per split and language."""
    from replication.corpora.parallel import write_parallel
    from replication.corpora.sources import read_alignments, read_document_blocks, read_parallel_splits

    if block_words is not None and align:
        raise ValueError("--align: blocks of sentences have no word alignment; leave out one of --align, --block-words")
    if block_words is None:
        texts = read_parallel_splits(source, split, language)
    else:
        texts = read_document_blocks(source, split, language, block_words)
    for name, lines in texts.items():
        write_parallel(output, name, lines)
    if align:
        alignments = read_alignments(
            source, split, language
        )  # which sentences a split gets, all splits together decide
        for name in alignments.keys() & align:
            write_parallel(output, name, {"alignment": alignments[name]})


def binarize(
    corpus: Annotated[Path, typer.Option(help="folder with <split>.<language>")],
    source: Source,
    target: Target,
    split: Annotated[list[str], typer.Option(help="repeat for several splits")],
    words: Words,
    merges: Annotated[int, typer.Option(help="merge operations of the joint byte pair encoding")],
    output: Annotated[Path, typer.Option()],
    like: Annotated[Path | None, typer.Option(help="take the codes and the dictionary of this output")] = None,
) -> None:
    """Tokenise aligned sentences, cut them into joint subwords, and write fairseq's binary format."""
    from replication.translation.data import binarize

    binarize(corpus, source, target, split, words, merges, output, like)


def train_translation(
    data: Data,
    source: Source,
    target: Target,
    architecture: Annotated[dict, typer.Option(parser=json_object, help="fairseq's options of the model")],
    training: Annotated[dict, typer.Option(parser=json_object, help="fairseq's options of training")],
    seed: Annotated[int, typer.Option()],
    output: Annotated[Path, typer.Option(help="folder for the model and its training log")],
    initial: Annotated[Path | None, typer.Option(help="a model.pt with the same dictionary to start from")] = None,
) -> None:
    """Train a translator, from random weights or from another model; goes on where an interrupted run stopped."""
    import time

    from replication.storage import provenance, write_json, write_table
    from replication.translation.training import FIXED, train

    start = time.perf_counter()
    log = train(data, source, target, architecture, training, seed, output, initial)
    write_table(output / "training.csv", log)
    summary = {"architecture": architecture, "training": FIXED | training, "seed": seed, "initial": str(initial or "")}
    write_json(output / "training.json", summary | {"train_runtime": time.perf_counter() - start} | provenance())


def extract_decoder(
    model: Model,
    data: Data,
    split: Annotated[str, typer.Option()],
    sentences: Annotated[int, typer.Option(help="how many, drawn at random")],
    shortest: Annotated[int, typer.Option(help="only target sentences of more pieces than this")],
    seed: Annotated[int, typer.Option()],
    output: Annotated[Path, typer.Option(help="folder for one file of attention graphs per layer")],
    batch_tokens: Annotated[int, typer.Option()] = 4000,
) -> None:
    """Store the queries and keys of every layer of decoder self-attention."""
    from replication.storage import write_table
    from replication.translation.evaluation import extract_decoder_graphs
    from replication.translation.model import load_translator

    translator = load_translator(model, data)
    text = extract_decoder_graphs(translator, split, sentences, shortest, seed, batch_tokens, output)
    write_table(output / "sentences.parquet", text)


def bleu(
    model: Model,
    data: Data,
    references: References,
    split: Annotated[str, typer.Option()],
    beam: Annotated[int, typer.Option()],
    words: Words,
    output: Annotated[Path, typer.Option(help="table with BLEU and its signature")],
    hypotheses: Annotated[Path, typer.Option(help="text file for the translations")],
    batch_tokens: Annotated[int, typer.Option()] = 4000,
) -> None:
    """BLEU of the translator itself, on a whole split."""
    import pandas as pd

    from replication.storage import replacing, write_table
    from replication.translation.evaluation import score, to_text
    from replication.translation.model import load_translator

    translator = load_translator(model, data)
    expected = references.read_text(encoding="utf-8").splitlines()
    pieces = translator.translate(split, len(expected), beam, batch_tokens)
    text = to_text(pieces, words, translator.task.cfg.target_lang)
    value, signature = score(text, expected)
    with replacing(hypotheses) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    row = {"split": split, "sentences": len(text), "beam": beam, "bleu": value, "signature": signature}
    write_table(output, pd.DataFrame([row]))


def decode(
    model: Model,
    data: Data,
    references: References,
    split: Annotated[str, typer.Option()],
    sentences: Annotated[int, typer.Option(help="the first so many sentences of the split")],
    beam: Annotated[int, typer.Option()],
    words: Words,
    projection: Annotated[list[Path], typer.Option(help="one per layer, in order")],
    centroids: Annotated[list[Path], typer.Option(help="one per layer, in order")],
    methods: Annotated[dict, typer.Option(parser=json_object, help="the grid: {method: {predictor, arguments}}")],
    window: Annotated[list[int], typer.Option(help="repeat for every window width; 0 is none")],
    global_tokens: Annotated[str, typer.Option(help="none or first")],
    seed: Annotated[int, typer.Option()],
    output: Annotated[Path, typer.Option()],
    batch_tokens: Annotated[int, typer.Option()] = 4000,
) -> None:
    """BLEU of beam search with predicted graphs in the decoder's self-attention, in all layers and heads at once."""
    from replication.graphs import projections
    from replication.graphs.centroids import load
    from replication.graphs.grids import expand
    from replication.graphs.replaced import Replacements
    from replication.storage import write_table
    from replication.translation.evaluation import evaluate_replaced
    from replication.translation.model import load_translator

    table = evaluate_replaced(
        load_translator(model, data),
        split,
        references.read_text(encoding="utf-8").splitlines()[:sentences],
        words,
        Replacements(
            [projections.load(path) for path in projection],
            [load(path) for path in centroids],
            expand(methods),
            window,
            global_tokens,
            seed * 1000,
        ),
        beam,
        batch_tokens,
    )
    table.insert(0, "seed", seed)
    write_table(output, table.assign(global_tokens=global_tokens, sentences=sentences))
