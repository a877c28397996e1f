"""A hundred mutations of what stages leave, over every kind of file: each is refused in one line that names the file.

Stages have made the files. A mutation flips a bit, cuts a file short, puts another file of the run in its place (with its seal
or without), repeats a row of a table, makes a weight NaN, or harms the seal; then the stage that reads the file is started.
``MUTATIONS`` in the environment says how many there are.
"""

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from command_line import run
from safetensors import safe_open
from safetensors.torch import save_file

from replication.files.paths import ROOT
from replication.files.seals import seal_of

MUTATIONS = int(os.environ.get("MUTATIONS", "100"))
SPLITS, LAYERS, SEEDS = ("train", "valid"), (0, 1), (1, 2)
METHODS = {
    "distance": {"predictor": "Distance", "threshold": 1.0},
    "kmeans": {"predictor": "Clustering", "clusters": 2},
}
MASKING = {"mask_probability": 0.3, "seed": 0, "batch_size": 8, "sequences": 4}
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
TRAINING = {"mask_probability": 0.3, "max_steps": 2, "per_device_train_batch_size": 4, "learning_rate": 0.003}
TRAINING |= {"logging_steps": 1, "save_steps": 2, "disable_tqdm": True}
RULES = {
    "sparsefinder-distance": {"predictor": "Distance", "threshold": [0.5, 2.0]},
    "quest": {"predictor": "Quest", "count": 1},
}
STUDENTS = {"dimension": 2, "gate_dimension": 2, "epochs": 1, "gate_epochs": 1, "learning_rate": 0.01, "points": 60}
RETROFIT = {
    "alpha": 1.5,
    "gold": "entmax:1.5",
    "batch_size": 8,
    "block": 4,
    "window": 1,
    "confidence": 0.5,
    "rules": RULES,
}
RETROFIT |= {"sequences": {"learn": 4, "calibrate": 24, "held_out": 4}, "students": STUDENTS}
TRANSFORMER = {"layers": 1, "embed_dim": 16, "ffn_embed_dim": 16, "attention_heads": 2}
FAIRSEQ = {"lr": 0.01, "warmup_updates": 1, "max_tokens": 400, "max_update": 2, "dropout": 0.0, "log_interval": 1}
SETTINGS = {"length": 16, "layers": 2, "model": SIZES, "projection": {"dimension": 2}}
CHARACTERS = {"architecture": "transformer_xl", "memory_length": 4, "layers": 1, "dimension": 8, "heads": 2, "inner": 8}
CHARACTERS |= {"dropout": 0.0}
RECIPE = {"steps": 2, "length": 8, "learning_rate": 0.01, "warmup_steps": 1, "clip_norm": 1.0, "log_every": 1}


@dataclass(frozen=True)
class Stage:
    """A stage with its options, which makes some files of others."""

    command: str
    reads: tuple[str, ...]
    options: dict[str, object]


def layered(pattern: str) -> list[str]:
    return [pattern.format(layer=layer) for layer in LAYERS]


def stages() -> list[Stage]:
    """In their order; paths are below the folder of results."""
    tokens = {split: f"masked_lm/tokens/{split}.safetensors" for split in SPLITS}
    corpora = tuple(f"masked_lm/corpus/{split}.parquet" for split in SPLITS)
    model = ("masked_lm/model/model.safetensors", "masked_lm/model/config.json")
    graphs = {split: layered(f"masked_lm/graphs/{split}/layer{{layer:02}}.safetensors") for split in SPLITS}
    students = {
        kind: layered(f"masked_lm/{kind}/seed1/layer{{layer:02}}.safetensors") for kind in ("projections", "centroids")
    }
    words = {"train": 900, "valid": 200}
    grammar = {"source": "grammar", "words": words, "seed": 0}
    fitted = {"graphs": graphs["train"], "seed": list(SEEDS)}
    grid = {"methods": METHODS, "window": [0, 3], "global_tokens": "first", "seed": 1}
    predicted = {"projections": "masked_lm/projections", "centroids": "masked_lm/centroids"}
    loaded = {"model": "masked_lm/model", "tokenizer": "masked_lm/tokenizer"}
    text = {"train": tokens["train"], "valid": tokens["valid"]}
    return [
        Stage("corpus", (), {"source": grammar, "split": list(SPLITS), "output": "masked_lm/corpus"}),
        Stage("tokenize", corpora, {"corpus": list(corpora), "length": 16, "vocab_size": 300,
                                    "tokenizer": "masked_lm/tokenizer", "output": "masked_lm/tokens"}),
        Stage("train-masked-lm", (tokens["train"], "masked_lm/tokenizer/tokenizer.json"),
              {"tokens": tokens["train"], "tokenizer": "masked_lm/tokenizer", "model": SIZES, "training": TRAINING, "seed": 0,
               "output": "masked_lm/model"}),
        Stage("extract", (*model, *tokens.values()), {"model": "masked_lm/model", "tokens": list(tokens.values()),
                                                      "sequences": [6, 4], "seed": 0, "output": "masked_lm/graphs"}),
        Stage("project", tuple(graphs["train"]), fitted | {"settings": {"dimension": 2}, "output": "masked_lm/projections"}),
        Stage("cluster", (*graphs["train"], *students["projections"]),
              fitted | {"projections": "masked_lm/projections", "methods": METHODS, "points": 60,
                        "output": "masked_lm/centroids"}),
        Stage("sweep", (*graphs["valid"], *students["projections"], *students["centroids"]),
              {"graphs": graphs["valid"], **predicted, **grid, "output": "masked_lm/sweep"}),
        Stage("replace", (*model, tokens["valid"], *students["projections"], *students["centroids"]),
              {**loaded, "tokens": tokens["valid"], **predicted, **grid, "masking": MASKING,
               "output": "masked_lm/replaced"}),
        Stage("measure-rules", (*model, *text.values()),
              {"model": "masked_lm/model", **text, "settings": RETROFIT, "seed": [0], "output": "retrofit/rules.parquet",
               "learning": "retrofit/learning.csv"}),
        Stage("configuration", (), {"settings": {"masked_lm": SETTINGS}, "output": "config.yaml"}),
        Stage("characters", (), {"source": grammar | {"words": words | {"test": 200}}, "output": "char_lm/text"}),
        Stage("train-characters", ("char_lm/text/train.txt", "char_lm/text/valid.txt"),
              {"text": "char_lm/text", "settings": CHARACTERS, "recipe": RECIPE, "rows": {"train": 2, "valid": 2, "test": 2},
               "seed": 0, "output": "char_lm/model"}),
        Stage("measure-characters", ("char_lm/model/model.safetensors", "char_lm/text/test.txt"),
              {"text": "char_lm/text", "model": "char_lm/model"}),
        *(translation() if find_spec("fairseq") else []),
        Stage("claims", ("masked_lm/sweep/seed1.parquet", "masked_lm/replaced/seed1.csv", "retrofit/rules.parquet",
                         "masked_lm/replaced/losses_seed1.parquet", "config.yaml"),
              {"published": ROOT / "config/published/claims.csv", "results": ".", "output": "claims.csv"}),
    ]  # fmt: skip


def translation() -> list[Stage]:
    """From sentences to BLEU; the GPU machine has no fairseq."""
    languages, splits = ("en", "de"), (*SPLITS, "test")
    corpus = {split: [f"translation/corpus/{split}.{one}" for one in languages] for split in splits}
    pair = {"from": "en", "to": "de"}
    grammar = {"source": "grammar", "sentences": {"train": 60, "valid": 6, "test": 6}, "seed": 0}
    sides = {f"{side}_{key}": size for side in ("encoder", "decoder") for key, size in TRANSFORMER.items()}
    data = tuple(f"translation/data/{file}" for file in ("dict.en.txt", "train.en-de.en.bin", "valid.en-de.de.idx"))
    model, bleu = "translation/model/model.safetensors", {"words": "spaces", "beam": 1, "batch_tokens": 400}
    return [
        Stage("parallel-corpus", (), {"source": grammar, "split": splits, "language": languages,
                                      "output": "translation/corpus"}),
        Stage("binarize", tuple(path for paths in corpus.values() for path in paths),
              {"corpus": "translation/corpus", **pair, "split": splits, "words": "spaces", "merges": 20,
               "output": "translation/data"}),
        Stage("train-translation", data, {"data": "translation/data", **pair, "architecture": sides, "training": FAIRSEQ,
                                          "seed": 0, "output": "translation/model"}),
        Stage("bleu", (model, corpus["test"][1], *data), {"model": model, "data": "translation/data", "split": "test", **bleu,
                                                   "references": corpus["test"][1], "output": "translation/bleu.csv",
                                                   "hypotheses": "translation/hypotheses.txt"}),
    ]  # fmt: skip


def started(results: Path, stage: Stage):
    """Run a stage in the folder of results."""
    before = Path.cwd()
    os.chdir(results)
    try:
        return run(stage.command, **stage.options)
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    at = tmp_path_factory.mktemp("mutations") / "results" / "tiny"
    at.mkdir(parents=True)
    for stage in stages():
        done = started(at, stage)
        assert done.exit_code == 0, (stage.command, done.output, done.exception)
        for path in stage.reads:
            assert seal_of(at / path).exists(), path
    return at


def flip(path: Path, others: list[Path], rng: random.Random) -> None:
    """A bit anywhere."""
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def cut(path: Path, others: list[Path], rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: -rng.randint(1, min(len(content), 40))])


def swap(path: Path, others: list[Path], rng: random.Random) -> None:
    """Another file of the same kind: of another layer, split or task."""
    path.write_bytes(rng.choice(others).read_bytes())


def swap_with_seal(path: Path, others: list[Path], rng: random.Random) -> None:
    other = rng.choice(others)
    path.write_bytes(other.read_bytes())
    shutil.copy(seal_of(other), seal_of(path))


def flip_seal(path: Path, others: list[Path], rng: random.Random) -> None:
    flip(seal_of(path), others, rng)


def repeat_a_line(path: Path, others: list[Path], rng: random.Random) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[-1]]))


def make_nan(path: Path, others: list[Path], rng: random.Random) -> None:
    with safe_open(path, framework="pt") as file:
        tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()
    name = rng.choice([name for name, x in tensors.items() if x.is_floating_point()])
    tensors[name].view(-1)[0] = torch.nan
    save_file(tensors, path, metadata)


def mutations_of(path: str, others: list[str]) -> list[Callable]:
    found = [flip, cut, flip_seal]
    if others:
        found += [swap, swap_with_seal]
    if path.endswith((".csv", ".txt", ".yaml")):
        found.append(repeat_a_line)
    if "model.safetensors" in path or "projections" in path or "graphs" in path:
        found.append(make_nan)
    return found


def drawn() -> list[tuple[str, str, str]]:
    """Path, mutation and stage that reads the path: every kind of each at least once, then at random."""
    every, reading = sorted({path for stage in stages() for path in stage.reads}), stages()
    cases = []
    for path in every:
        others = [other for other in every if other != path and Path(other).suffix == Path(path).suffix]
        readers = [stage.command for stage in reading if path in stage.reads]
        cases += [(path, mutation.__name__, reader) for mutation in mutations_of(path, others) for reader in readers]
    rng = random.Random(0)
    rng.shuffle(cases)
    return [cases[number % len(cases)] for number in range(MUTATIONS)]


@pytest.mark.parametrize(
    ("number", "case"),
    list(enumerate(drawn())),
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else str(value),
)
def test_a_mutation_is_refused_in_one_line_that_names_the_file(results, number, case):
    name, mutation, command = case
    path, (stage,) = results / name, [one for one in stages() if one.command == command]
    every = sorted({results / other for one in stages() for other in one.reads} - {path})
    others = [other for other in every if other.suffix == path.suffix]
    kept = {one: one.read_bytes() for one in (path, seal_of(path))}
    try:
        globals()[mutation](path, others, random.Random(number))
        assert any(one.read_bytes() != content for one, content in kept.items())
        done = started(results, stage)
    finally:
        for one, content in kept.items():
            one.write_bytes(content)
    assert done.exit_code == 1, done.output
    assert isinstance(done.exception, SystemExit)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert path.name in line
    assert "Traceback" not in done.output


def test_nothing_was_harmed(results):
    """And without a mutation every stage runs as before."""
    before = (results / "masked_lm/sweep/seed1.parquet").read_bytes()
    for stage in stages():
        if stage.command in ("sweep", "measure-characters", "claims"):
            assert started(results, stage).exit_code == 0
    assert (results / "masked_lm/sweep/seed1.parquet").read_bytes() == before
