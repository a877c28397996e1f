"""What needs no attention graphs: a translator with each normaliser, attention by length, and reach of factorised patterns."""

from collections.abc import Iterator

from replication.run.layout import TRANSLATOR_FILES, reach_table, scaling_table
from replication.run.text_places import ParallelPlace
from replication.run.trained import CONTENDERS
from replication.steps.step import Declaring, Step


def normalizer_steps(at: Declaring) -> Iterator[Step]:
    """Yield the steps of Explicit Sparse Transformer's Table 25: speed, BLEU and attended keys with each normaliser."""
    base = "normalizer_speed"
    text = ParallelPlace(at.run, base)
    pair = {f"{base}/corpus": "-".join(text.pair)}
    files, folders = text.files, [text.files.models / implementation / name for implementation, name in CONTENDERS]
    if f"{base}/models/{'/'.join(CONTENDERS[0])}" not in at.imported:
        yield Step(
            command="train_normalizers",
            message="Train a translator with each normaliser",
            reads=[files.data],
            makes=[folder / file for folder in folders for file in TRANSLATOR_FILES],
            sees=at.see(base, "architecture", "training", "top_k") | at.see("", "seed") | pair,
        )
    yield Step(
        command="normalizer_speed",
        message="Time a translator with each normaliser",
        reads=[
            files.data,
            *(folder / "model.safetensors" for folder in folders),
            files.corpus("test", text.pair[1]),
        ],
        makes=[files.table, files.sentences, files.details],
        sees=at.see(base, "repeats", "beam", "batch") | pair,
        cores="all",
    )


def scaling_steps(at: Declaring) -> Iterator[Step]:
    """Yield the step that measures time and memory of block-sparse attention and its peers by sequence length."""
    yield Step(
        command="scaling",
        message="Time attention by sequence length",
        makes=[scaling_table(at.run.profile)],
        sees=at.see("", "scaling", "seed"),
        cores="all",
    )


def factorised_steps(at: Declaring) -> Iterator[Step]:
    """Yield the step of Sparse Transformers' patterns, which depend on positions alone and need no trained model."""
    yield Step(
        command="factorised",
        message="Trace information through factorised attention",
        makes=[reach_table(at.run.profile)],
    )
