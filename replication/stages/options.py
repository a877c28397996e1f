"""What stages share: their options, and errors that name what is wrong without a traceback."""

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from replication.files.seals import making, verified, verified_folder


def json_object(text: str) -> dict:
    """A section of the configuration, passed on the command line as a JSON object."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise typer.BadParameter(f"a JSON object expected, got {text}")
    return value


#: Options that say where a stage writes, or where all results are, of which it reads some.
WRITTEN = {"output", "learning", "hypotheses", "checkpoints", "results"}


def stage(function: Callable) -> Callable:
    """Check what a stage is given, seal what it makes, and say errors about the input in one line, with exit status 1."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        try:
            with making(function.__name__):
                for path in _given(kwargs):
                    if not path.is_dir():
                        verified(path)
                    # Where a stage writes, what it wrote the last time may be out of date. What it reads is verified then.
                    elif path != kwargs.get("output"):
                        verified_folder(path)
                return function(*args, **kwargs)
        except (ValueError, OSError) as error:
            typer.secho(f"error: {' '.join(str(error).split())}", fg="red", err=True)
            raise typer.Exit(1) from error

    return wrapped


def _given(options: dict[str, object]) -> Iterator[Path]:
    """Paths to read from among the options of a stage."""
    for name, value in options.items():
        if name not in WRITTEN:
            yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Path))


def paired(**options: list) -> list[tuple]:
    """What belongs together in options that are repeated. Raises ``ValueError`` if one has more or fewer values."""
    counts = {name: len(values) for name, values in options.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(
            ", ".join(f"--{name}: {count} values" for name, count in counts.items()) + "; as many are needed"
        )
    return list(zip(*options.values(), strict=True))


Seed = Annotated[int, typer.Option(help="of all that is drawn at random")]
Seeds = Annotated[list[int], typer.Option(help="repeat for several seeds")]
Output = Annotated[Path, typer.Option(help="file or folder to write")]
Split = Annotated[str, typer.Option(help="train, valid or test")]
Splits = Annotated[list[str], typer.Option(help="repeat for several splits")]
Corpus = Annotated[dict, typer.Option(parser=json_object, help='{"source": "grammar" | "folder" | "hub", ...}')]

# Attention graphs, and what is learned from them.
Graphs = Annotated[list[Path], typer.Option(help="attention graphs, one file per layer, in order")]
Projections = Annotated[list[Path], typer.Option("--projection", help="one per layer, in order")]
Centroids = Annotated[list[Path], typer.Option("--centroids", help="one per layer, in order")]
ProjectionsOfSeeds = Annotated[Path, typer.Option(help="folder of project, with every seed")]
CentroidsOfSeeds = Annotated[Path, typer.Option(help="folder of cluster, with every seed")]
Projecting = Annotated[dict, typer.Option(parser=json_object, help="arguments of fit_projection")]
Methods = Annotated[dict, typer.Option(parser=json_object, help="the grid: {method: {predictor, arguments}}")]
Windows = Annotated[list[int], typer.Option(help="repeat for every window width; 0 is none")]
GraphTokens = Annotated[Path, typer.Option(help="sequences of the same split")]
OfSeeds = Annotated[Path, typer.Option(help="folder for seed<n>/, one file per layer in each, named as its graphs")]
Table = Annotated[Path, typer.Option(help="table of all layers")]

# The masked language model.
Model = Annotated[Path, typer.Option(help="folder of the trained model")]
Tokenizer = Annotated[Path, typer.Option(help="folder of the tokenizer")]
Tokens = Annotated[Path, typer.Option(help="validation sequences")]
Masking = Annotated[
    dict, typer.Option(parser=json_object, help='{"mask_probability", "seed", "batch_size", "sequences"}')
]
Blocks = Annotated[
    dict, typer.Option(parser=json_object, help='{"counts", "clusters", "pooling", "metric"}; others are ignored')
]
BlockSizes = Annotated[list[int], typer.Option(help="tokens per block; repeat for several sizes")]
BlockStudents = Annotated[Path, typer.Option(help="folder of fit-blocks, with every size and seed")]

Processes = Annotated[int, typer.Option(help="that share each batch, one per GPU")]

# Translation.
Translator = Annotated[Path, typer.Option(help="model.safetensors of a translator")]
Data = Annotated[Path, typer.Option(help="folder of binarize")]
Source = Annotated[str, typer.Option("--from", help="source language")]
Target = Annotated[str, typer.Option("--to", help="target language")]
References = Annotated[Path, typer.Option(help="text of the target side, a sentence per line")]
Words = Annotated[str, typer.Option(help="moses or spaces: how text becomes words")]
Architecture = Annotated[dict, typer.Option(parser=json_object, help="fairseq's options of the model")]
Training = Annotated[dict, typer.Option(parser=json_object, help="fairseq's options of training")]
Beam = Annotated[int, typer.Option(help="hypotheses that beam search keeps")]
BatchTokens = Annotated[int, typer.Option(help="tokens of a batch, padding included")]

# Characters.
Text = Annotated[Path, typer.Option(help="folder of characters: train.txt, valid.txt, test.txt")]

# Image captioning.
Pictures = Annotated[Path, typer.Option(help="folder of pictures: train.jsonl, test.jsonl")]
RegionFeatures = Annotated[Path, typer.Option("--regions", help="folder with <image>.npz, or one npz of all images")]

# A model that somebody has.
RetrofitModel = Annotated[
    str, typer.Option("--model", help="folder of a masked language model, package:NAME/FOLDER, or one of the hub")
]
Retrofit = Annotated[dict, typer.Option(parser=json_object, help="section retrofit of the configuration")]

# Models that are shipped.
Checkpoints = Annotated[Path, typer.Option(help="folder of all checkpoints, with weights.csv")]
Run = Annotated[dict, typer.Option(parser=json_object, help="settings of the training, and its seed")]
TrainingText = Annotated[list[Path], typer.Option(help="files that are trained on; repeat, in the same order")]
CodeHash = Annotated[str, typer.Option(help="hash of the code that trains: python -m workflow.closure STAGE")]
