"""A hundred mutations of what stages leave, over every kind of file: each is refused in one line that names the file.

Stages have made the files. A mutation flips a bit, cuts a file short, puts another file of the run in its place (with its entry
in the manifest or without), repeats a row of a table, makes a weight NaN, or harms the manifest; then the stage that reads the
file is started.
``MUTATIONS`` in the environment says how many there are.
"""

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from command_line import configure, run, succeed
from safetensors import safe_open
from safetensors.torch import save_file

from profiles import CAPTIONING, MASKED_LM, PATTERNS, RETROFIT, TRANSLATION
from replication.files.manifest import MANIFEST, changing, place_of, read_manifest
from replication.files.paths import ROOT

MUTATIONS = int(os.environ.get("MUTATIONS", "100"))
SPLITS, LAYERS, SEEDS = ("train", "valid"), (0, 1), (1, 2)
METHODS = {
    "distance": {"predictor": "Distance", "threshold": 1.0},
    "kmeans": {"predictor": "Clustering", "clusters": 2},
}
SECTIONS = {
    "masked_lm": MASKED_LM | {"methods": METHODS, "replaced": {"windows": [0, 3], "methods": METHODS}},
    "retrofit": RETROFIT,
    "patterns": PATTERNS,
    "captioning": CAPTIONING,
}
TOY, PAIR = "patterns/text/toy", "translation/grc-en"


@dataclass(frozen=True)
class Stage:
    """A stage with its place and options, and the files below the folder of results that it reads."""

    command: str
    places: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    options: dict[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return "-".join([self.command, *self.places])


def layered(pattern: str) -> list[str]:
    return [pattern.format(layer=layer) for layer in LAYERS]


def stages() -> list[Stage]:
    """Return all stages in their order."""
    masked_lm = ("masked_lm",)
    tokens = {split: f"masked_lm/tokens/{split}.safetensors" for split in SPLITS}
    tokenizer = tuple(f"masked_lm/tokenizer/{file}.json" for file in ("tokenizer", "tokenizer_config"))
    model = ("masked_lm/model/model.safetensors", "masked_lm/model/config.json")
    graphs = {split: layered(f"masked_lm/graphs/{split}/layer{{layer:02}}.safetensors") for split in SPLITS}
    students = {
        kind: layered(f"masked_lm/{kind}/seed1/layer{{layer:02}}.safetensors") for kind in ("projections", "centroids")
    }
    own = {task: tuple(f"{task}/corpus/{split}.parquet" for split in SPLITS) for task in ("masked_lm", "retrofit")}
    text = tuple(f"retrofit/tokens/{split}.safetensors" for split in SPLITS)
    return [
        Stage("corpus", masked_lm),
        Stage("tokenize", masked_lm, own["masked_lm"]),
        Stage("train-masked-lm", (), (tokens["train"], *tokenizer)),
        Stage("extract", (), (*model, *tokens.values())),
        Stage("project", masked_lm, tuple(graphs["train"])),
        Stage("cluster", masked_lm, (*graphs["train"], *students["projections"])),
        Stage("sweep", masked_lm, (*graphs["valid"], *students["projections"], *students["centroids"])),
        Stage("replace", (), (*model, *tokenizer, tokens["valid"], *students["projections"], *students["centroids"])),
        Stage("corpus", ("retrofit",)),
        Stage("tokenize", ("retrofit",), (*own["retrofit"], *tokenizer)),
        Stage("measure-rules", (), (*model, *text)),
        *characters(),
        *captioning(),
        *(translation() if find_spec("fairseq") else []),
        Stage("configuration", options={"output": "results/tiny/config.yaml"}),
        Stage("claims", ("results/tiny",),
              ("masked_lm/sweep/kmeans.parquet", "masked_lm/replaced/seed1.csv", "retrofit/rules.parquet",
               "masked_lm/replaced/losses_seed1.parquet", "config.yaml"),
              {"config": None, "published": ROOT / "config/published", "output": "results/tiny/claims.csv"}),
    ]  # fmt: skip


def characters() -> list[Stage]:
    """From a text to bits per character."""
    texts = [f"{TOY}/text/{split}.txt" for split in (*SPLITS, "test")]
    models = list(PATTERNS["text"]["models"])
    left = [f"{TOY}/models/{model}/seed0/{file}" for model in models for file in ("model.safetensors", "training.json")]
    return [
        Stage("characters", (TOY,)),
        *(Stage("train-characters", (TOY,), tuple(texts), {"model": model, "seed": 0}) for model in models),
        Stage("measure-characters", (TOY,), (*left, texts[-1])),
        Stage("attention-parts", (TOY,), (left[0], texts[-1])),
        Stage("time-steps", (TOY,), (left[0], texts[0])),
    ]


def captioning() -> list[Stage]:
    """From pictures to scores of captions."""
    regions = "captioning/pictures/regions.npz"
    pictures = {split: f"captioning/pictures/{split}.jsonl" for split in ("train", "test")}
    files = ("model.safetensors", "config.json", "vocabulary.json", "training.json")
    left = [f"captioning/models/{model}/seed0/{file}" for model in CAPTIONING["models"] for file in files]
    return [
        Stage("pictures"),
        *(
            Stage("train-captioner", (), (pictures["train"], regions), {"model": model, "seed": 0})
            for model in CAPTIONING["models"]
        ),
        Stage("measure-captioners", (), (pictures["test"], regions, *left)),
    ]


def translation() -> list[Stage]:
    """From sentences to BLEU; the GPU machine has no fairseq."""
    corpus = [f"{PAIR}/corpus/{split}.{language}" for split in (*SPLITS, "test") for language in ("grc", "en")]
    data = [f"{PAIR}/data/{file}" for file in ("dict.en.txt", "train.grc-en.en.bin", "valid.grc-en.grc.idx")]
    return [
        Stage("parallel-corpus", (PAIR,)),
        Stage("binarize", (PAIR,), tuple(corpus)),
        Stage("train-translation", (PAIR,), tuple(data)),
        Stage("bleu", (PAIR,), (f"{PAIR}/model/model.safetensors", corpus[-1], *data)),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder in which every stage has run."""
    folder = tmp_path_factory.mktemp("mutations")
    sections = SECTIONS | ({"translation": TRANSLATION} if find_spec("fairseq") else {})
    results = configure(folder, student_seeds=SEEDS, **sections)
    for stage in stages():
        succeed(folder, stage.command, *stage.places, **stage.options)
        for path in stage.reads:
            assert path in read_manifest(results)["made"], path
    return folder


@pytest.fixture(scope="module")
def results(folder) -> Path:
    return folder / "results/tiny"


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


def swap_with_entry(path: Path, others: list[Path], rng: random.Random) -> None:
    """Another file that its own entry in another run's manifest describes."""
    other = rng.choice(others)
    path.write_bytes(other.read_bytes())
    elsewhere = manifest_of(path).parents[1] / "other"
    with changing(elsewhere) as manifest:
        manifest["made"][place_of(path)] = read_manifest(manifest_of(path).parent)["made"][place_of(other)]
    shutil.copy(elsewhere / MANIFEST, manifest_of(path))
    shutil.rmtree(elsewhere)


def flip_manifest(path: Path, others: list[Path], rng: random.Random) -> None:
    flip(manifest_of(path), others, rng)


def manifest_of(path: Path) -> Path:
    return next(folder for folder in path.parents if folder.name == "tiny") / MANIFEST


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
    found = [flip, cut, flip_manifest]
    if others:
        found += [swap, swap_with_entry]
    if path.endswith((".csv", ".txt", ".yaml")):
        found.append(repeat_a_line)
    if "model.safetensors" in path or "projections" in path or "graphs" in path:
        found.append(make_nan)
    return found


def drawn() -> list[tuple[str, str, str]]:
    """Path, mutation and stage that reads the path: every path and every mutation at least once, then at random."""
    every, reading = sorted({path for stage in stages() for path in stage.reads}), stages()
    cases = []
    for path in every:
        others = [other for other in every if other != path and Path(other).suffix == Path(path).suffix]
        readers = dict.fromkeys(stage.name for stage in reading if path in stage.reads)
        cases += [(path, mutation.__name__, reader) for mutation in mutations_of(path, others) for reader in readers]
    random.Random(0).shuffle(cases)
    seen, first = set(), []
    for case in cases:
        if not seen.issuperset(case[:2]):
            first.append(case)
            seen.update(case[:2])
    cases = first + [case for case in cases if case not in first]
    return [cases[number % len(cases)] for number in range(MUTATIONS)]


@pytest.mark.parametrize(
    ("number", "case"),
    list(enumerate(drawn())),
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else str(value),
)
def test_a_mutation_is_refused_in_one_line_that_names_the_file(folder, results, number, case):
    name, mutation, reader = case
    path, stage = results / name, next(stage for stage in stages() if stage.name == reader)
    every = sorted({results / other for stage in stages() for other in stage.reads} - {path})
    others = [other for other in every if other.suffix == path.suffix]
    kept = {one: one.read_bytes() for one in (path, manifest_of(path))}
    try:
        globals()[mutation](path, others, random.Random(number))
        assert any(one.read_bytes() != content for one, content in kept.items())
        done = run(folder, stage.command, *stage.places, **stage.options)
    finally:
        for one, content in kept.items():
            one.write_bytes(content)
    assert done.exit_code == 1, done.output
    assert isinstance(done.exception, SystemExit)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert name in line or mutation in ("flip_manifest", "swap_with_entry")
    assert name in line or MANIFEST in line
    assert "Traceback" not in done.output


def test_nothing_was_harmed(folder, results):
    """And without a mutation every stage runs as before."""
    before = (results / "masked_lm/sweep/kmeans.parquet").read_bytes()
    for stage in stages():
        if stage.command in ("sweep", "measure-characters", "claims"):
            succeed(folder, stage.command, *stage.places, **stage.options)
    assert (results / "masked_lm/sweep/kmeans.parquet").read_bytes() == before
