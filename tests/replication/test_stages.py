"""The command line: every stage of the masked language model from a text to tables, in order, and errors of one line."""

import gzip
import json
import math
import re
import shutil
from base64 import b64decode
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from command_line import CONFIG, assert_one_line, configure, run, succeed

from profiles import GRID, MASKED_LM
from replication.claims import VERDICTS
from replication.claims.masked_lm import nats_curves
from replication.claims.scores import RESAMPLES, Units
from replication.corpora.tokens import KIND, load_tokenizer, read_tokens
from replication.files.manifest import FormatError
from replication.files.paths import ROOT
from replication.files.storage import read_tensors
from replication.graphs import projections
from replication.graphs.centroids import fit_members
from replication.graphs.grids import expand
from replication.graphs.shards import open_graphs
from replication.masked_lm.model import load_entmax_model
from replication.masked_lm.passage import cut, passage_data
from replication.results.settings import labelled
from replication.run.layout import MaskedLM, layer_file

#: Examples of the guide to predictors of the user.
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/add-a-predictor.md").read_text(), re.DOTALL)
METHODS = {name.replace("kmeans", "sparsefinder-kmeans"): method for name, method in GRID.items()}
SECTION = MASKED_LM | {
    "methods": METHODS,
    "replaced": {"windows": [0, 3], "methods": METHODS},
    "unseen": {"other": {"source": "bible", "valid": ["3 John"]}},
}
SETTINGS = ["threshold", "clusters", "random_keys"]
POINT = ["seed", "method", *SETTINGS, "window"]
MEASURES = ["recall", "sparsity", "precision", "exact", "keyless", "gold_sparsity"]
COLUMNS = {
    "model/training.csv": ["step", "epoch", "learning_rate", "loss"],
    "sweep/bigbird.parquet": ["seed", "layer", "method", "random_keys", "head", "window", *MEASURES, "global_tokens"],
    "coreference.csv": ["layer", "head", "mass", "chance", "tokens", "chains"],
    "tags.csv": ["layer", "side", "head", "tag", "cluster", "count", "share", "tags"],
    "replaced/seed1.csv": [*POINT, "nats", "sparsity", "perplexity", "global_tokens"],
    "replaced/losses_seed1.parquet": [*POINT, "sequence", "nats", "places"],
    "blocks/size2/evaluated/losses_seed1.parquet": ["seed", "block_size", "method", "count", "clusters", "alpha", "sequence",
                                                    "nats", "places"],
    "blocks/size2/evaluated/seed1.csv": ["seed", "block_size", "method", "count", "clusters", "alpha", "nats", "recall",
                                         "density", "attended", "perplexity"],
    "blocks/size2/timed.csv": ["block_size", "method", "count", "clusters", "alpha", "prediction_seconds",
                               "attention_seconds", "model_seconds", "model_repeats", "batch_size", "length", "repeats",
                               "device", "threads"],
    "perplexity.csv": ["corpus", "model", "nats", "masked_tokens", "perplexity"],
}  # fmt: skip
LEARNING = (("project", "masked_lm"), ("cluster", "masked_lm"), ("fit-blocks",))
MEASURING = (("sweep", "masked_lm"), ("replace",), ("evaluate-blocks",), ("time-blocks",))
ORDER = (
    ("corpus", "masked_lm"),
    ("corpus", "masked_lm/unseen/other"),
    ("tokenize", "masked_lm"),
    ("tokenize", "masked_lm/unseen/other"),
    ("train-masked-lm",),
    ("extract",),
    *LEARNING,
    *MEASURING,
    ("coreference",),
    ("tags",),
    ("passage",),
    ("perplexity",),
)


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def copy_of(run_folder: Path, folder: Path, **changes: object) -> Path:
    """Copy a run, configure the copy with some changed keys, and return the task's folder."""
    shutil.copytree(run_folder, folder)
    settings = yaml.safe_load((folder / "config.yaml").read_text()) | changes
    (folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    return folder / "results/tiny/masked_lm"


@pytest.fixture(scope="module")
def at(tmp_path_factory) -> Path:
    """The folder in which every stage has run."""
    folder = tmp_path_factory.mktemp("stages") / "run"
    configure(folder, masked_lm=SECTION)
    for command in ORDER:
        succeed(folder, *command)
    return folder


@pytest.fixture(scope="module")
def results(at) -> Path:
    return at / "results/tiny/masked_lm"


@pytest.mark.parametrize("name", COLUMNS)
def test_tables_have_their_columns_and_no_gaps(results, name):
    table = read(results / name)
    assert list(table.columns) == COLUMNS[name]
    assert len(table) > 0
    assert not table.drop(columns=SETTINGS, errors="ignore").isna().any().any()


def test_the_sweep_has_a_row_per_member_window_and_head(results):
    table = pd.concat([read(results / f"sweep/{method}.parquet") for method in METHODS])
    assert len(table) == 7 * 2 * 2 * 2 * 2
    assert set(table["layer"]) == {0, 1}
    assert set(table["seed"]) == {1, 2}
    assert not table.duplicated([*POINT, "layer", "head"]).any()
    assert table[MEASURES].min().min() >= 0
    assert table[MEASURES].max().max() <= 1
    labels = {"", "clusters=2", "clusters=3", "random_keys=2", "threshold=0.5", "threshold=2"}
    assert set(labelled(table)["setting"]) == labels


def test_a_predictor_of_the_user_is_fitted_to_gold_edges(at, tmp_path):
    """With a threshold that contains all edges of the training graphs, and one that contains half of them."""
    (tmp_path / "learned.py").write_text("\n\n".join(EXAMPLES[:2]).replace("print(", "str("))
    learned = {"learned": {"predictor": f"{tmp_path}/learned.py:NearEnough", "recall": [0.5, 1.0]}}
    section = SECTION | {"methods": METHODS | learned, "replaced": {"windows": [0], "methods": METHODS | learned}}
    results = copy_of(at, tmp_path / "fitted", masked_lm=section)
    for command in (("sweep", "masked_lm", "--method", "learned"), ("replace",)):
        succeed(tmp_path / "fitted", *command)
    swept = (
        read(results / "sweep/learned.parquet").query("window == 0").groupby(["own_recall", "seed"])["recall"].mean()
    )
    replaced = read(results / "replaced/seed1.csv").query("method == 'learned'").set_index("own_recall")["sparsity"]
    assert replaced[0.5] > replaced[1.0]
    members, files = expand(learned), MaskedLM(results)
    for seed in (1, 2):
        assert swept[0.5, seed] < swept[1.0, seed] < 1  # on other text
        projection = projections.load(files.projections(seed) / layer_file(0))
        with open_graphs(files.graphs("train", 0)) as graphs:
            (batch,) = graphs.batches(len(graphs))
            fitted = fit_members(members, [batch], projection, seed)
            for member, share in zip(members, (0.5, 1.0), strict=True):
                found = fitted[member.point].predict(projection(batch.q), projection(batch.k), lengths=batch.lengths)
                of_heads = (found & batch.gold).sum((0, 2, 3)) / batch.gold.sum((0, 2, 3))
                assert of_heads.tolist() == pytest.approx([share] * graphs.heads, abs=0.05)


def test_a_passage_has_the_graphs_and_projections_that_were_stored(results):
    """The first stored sequence is as long as a passage may be, so that its graphs are the stored ones."""
    layers = [f"layer{layer:02}.safetensors" for layer in range(2)]
    students = [(projections.load(results / "projections/seed1" / name), {}) for name in layers]
    stored = []
    for name in layers:
        with open_graphs(results / "graphs/valid" / name) as graphs:
            stored.append(graphs.batch(0, 1))
            (first, *_) = graphs.sequence.tolist()
    ids = cut(read_tokens(results / "tokens/valid.safetensors")["input_ids"][first])
    tokenizer = load_tokenizer(results / "tokenizer")
    passage = passage_data(*load_entmax_model(results / "model"), tokenizer, ids, students)
    shape = [passage[name] for name in ("layers", "heads", "length")]
    q, counts = (
        np.frombuffer(b64decode(passage[name]), kind) for name, kind in (("q", np.float32), ("counts", np.uint8))
    )
    keys = np.split(np.frombuffer(b64decode(passage["keys"]), np.uint8), counts.cumsum(dtype=int)[:-1])
    for layer, (batch, (projection, _)) in enumerate(zip(stored, students, strict=True)):
        np.testing.assert_allclose(q.reshape(*shape, -1)[layer], projection(batch.q)[0], atol=1e-5)
        rows = batch.gold[0].flatten(0, 1)
        for row, found in zip(rows, keys[layer * len(rows) : (layer + 1) * len(rows)], strict=True):
            assert found.tolist() == row.nonzero()[:, 0].tolist()


def test_the_explorers_passage_begins_the_held_out_text(results):
    passage = json.loads((results / "passage.json").read_text())
    ids = read_tokens(results / "tokens/valid.safetensors")["input_ids"][0].tolist()
    assert passage["words"] == load_tokenizer(results / "tokenizer").convert_ids_to_tokens(ids)
    assert {name.partition("-")[0] for name in passage["centroids"]} == {"kmeans", "routing"}


def test_a_second_sweep_is_the_same_tables(at, results):
    paths = [results / f"sweep/{method}.parquet" for method in METHODS]
    before = [path.read_bytes() for path in paths]
    succeed(at, "sweep", "masked_lm")
    assert [path.read_bytes() for path in paths] == before


def test_a_seed_alone_gives_its_tables(at, results, tmp_path):
    """A job of several seeds and sizes does what one of each does: no seed or size leaves a trace in the next."""
    blocks = SECTION["blocks"] | {"sizes": [4]}
    alone = copy_of(at, tmp_path / "alone", student_seeds=[2], masked_lm=SECTION | {"blocks": blocks})
    for folder in ("projections", "centroids", "blocks", "sweep", "replaced"):
        shutil.rmtree(alone / folder)
    for command in (*LEARNING, ("sweep", "masked_lm"), ("replace",), ("evaluate-blocks",)):
        succeed(tmp_path / "alone", *command)
    made = [path for folder in ("projections", "centroids", "blocks", "sweep", "replaced")
            for path in (alone / folder).rglob("*") if path.is_file()]  # fmt: skip
    assert len(made) == 2 + 2 + 4 + 2 + len(METHODS) + 2
    for path in made:
        name = path.relative_to(alone)
        if path.suffix == ".safetensors":
            assert path.read_bytes() == (results / name).read_bytes(), name
        else:
            expected = read(results / name)
            expected = expected[expected["seed"] == 2].reset_index(drop=True)
            pd.testing.assert_frame_equal(read(path), expected, check_exact=True)


def test_replaced_graphs_are_measured_for_every_member_and_window(results):
    table = labelled(read(results / "replaced/seed1.csv")).set_index(["method", "setting", "window"])
    assert len(table) == 2 + 7 * 2
    nats = table["nats"]
    assert nats["full", "", 0] == pytest.approx(nats["gold graph", "", 0], abs=1e-5)


@pytest.mark.parametrize(
    ("table", "losses", "keys"),
    [
        ("replaced/seed1.csv", "replaced/losses_seed1.parquet", POINT),
        (
            "blocks/size2/evaluated/seed1.csv",
            "blocks/size2/evaluated/losses_seed1.parquet",
            ["method", "count", "clusters"],
        ),
    ],
)
def test_losses_of_sequences_add_up_to_the_tables(results, table, losses, keys):
    found = read(results / losses)
    assert found["sequence"].nunique() == SECTION["evaluation"]["sequences"]
    sums = found.groupby(keys, dropna=False)[["nats", "places"]].sum()
    expected = read(results / table).groupby(keys, dropna=False)["nats"].mean()
    assert (sums["nats"] / sums["places"]).to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-9)


def test_blocks_are_evaluated_and_timed_at_every_k_that_fits(results):
    """There are eight blocks, so K = 9 does not fit."""
    evaluated, timed = read(results / "blocks/size2/evaluated/seed1.csv"), read(results / "blocks/size2/timed.csv")
    methods = ["full", "sparsefinder-v1", "sparsefinder-v2", "bigbird", "bigbird-softmax"]
    assert evaluated["method"].tolist() == methods
    assert timed["method"].tolist() == [*methods, "full-kernel"]
    assert evaluated["count"].tolist() == [8, 1, 1, 1, 1]
    assert (timed["length"] == 16).all()


def test_the_ledger_reads_what_the_stages_wrote(at, tmp_path):
    """The model is far from any premise, but its numbers are resampled."""
    results = copy_of(at, tmp_path / "run")
    succeed(tmp_path / "run", "configuration", output="results/tiny/config.yaml")
    output = tmp_path / "claims.csv"
    published = Path(__file__).parents[2] / "config/published"
    succeed(tmp_path / "run", "claims", "results/tiny", config=None, published=published, output=output)
    found = read(output).set_index("id")
    assert found.loc["sparse-consistency", "verdict"] == "holds"
    assert set(found["verdict"]) <= set(VERDICTS)
    # With it, points at which so small a model is worse than a bigram would be left out.
    (results / "perplexity.csv").unlink()
    resampled = nats_curves(results)
    assert resampled.units == Units(6, "sequences")
    nats = read(results / "replaced/seed1.csv").query("method == 'bigbird'")["nats"]
    first, second = resampled.methods["bigbird"]
    assert first.scores.shape == second.scores.shape == (1 + RESAMPLES, len(nats))
    assert first.scores[0].max() == pytest.approx(-nats.min(), abs=1e-6)


def test_perplexity_compares_three_models_on_the_same_tokens(results):
    table = read(results / "perplexity.csv")
    assert set(table["model"]) == {"unigram", "interpolated bigram", "entmax RoBERTa"}
    assert list(table["corpus"].unique()) == ["held-out", "other"]
    assert (table.groupby("corpus")["masked_tokens"].nunique() == 1).all()
    assert table["perplexity"].to_list() == pytest.approx([math.exp(nats) for nats in table["nats"]])


def test_the_training_is_summed_up(results):
    assert len(read(results / "model/training.csv")) == 5
    summary = json.loads((results / "model/training.json").read_text())
    assert summary["architecture"]["num_hidden_layers"] == 2
    assert summary["training"] == SECTION["training"]
    assert summary["length"] == 16
    assert {"hardware", "torch", "source"} <= summary.keys()


def test_an_unseen_text_is_cut_with_the_tokenizer_of_the_training_text(at, results, tmp_path):
    """The same text as an unseen one gives the same sequences."""
    same = copy_of(at, tmp_path / "same", masked_lm=SECTION | {"unseen": {"same": SECTION["corpus"]}})
    for command in (("corpus", "masked_lm/unseen/same"), ("tokenize", "masked_lm/unseen/same")):
        succeed(tmp_path / "same", *command)
    again, first = (
        read_tensors(path, kind=KIND)["input_ids"]
        for path in (same / "unseen/same/tokens/valid.safetensors", results / "tokens/valid.safetensors")
    )
    assert again.equal(first)


def test_the_configuration_is_written_without_where_it_runs(tmp_path):
    configure(tmp_path, masked_lm=SECTION, gpus=2)
    succeed(tmp_path, "configuration", output="written.yaml")
    written = yaml.safe_load((tmp_path / "written.yaml").read_text())
    assert written == {"profile": "tiny", "seed": 0, "student_seeds": [1, 2], "masked_lm": SECTION}


def test_a_section_that_is_missing_is_named(at):
    assert_one_line(run(at, "pictures"), "captioning: the configuration tiny has no such section")


def test_a_missing_pretrained_model_is_named_in_one_line(at, tmp_path):
    copy_of(at, tmp_path / "run", masked_lm=SECTION | {"model": {"pretrained": "nowhere"}})
    assert_one_line(run(tmp_path / "run", "train-masked-lm"), "nowhere")


def test_a_truncated_archive_is_named_in_one_line(tmp_path):
    whole = gzip.compress(b"a sentence of words\n" * 1000)
    (tmp_path / "text").mkdir()
    for split in ("train", "valid"):
        (tmp_path / f"text/{split}.txt.gz").write_bytes(whole[:-20])
    configure(tmp_path, masked_lm=SECTION | {"corpus": {"source": "folder", "path": "text"}})
    assert_one_line(run(tmp_path, "corpus", "masked_lm"), "train.txt.gz")


def test_a_truncated_tensor_file_is_named_in_one_line(at, tmp_path):
    graphs = copy_of(at, tmp_path / "run") / "graphs/train"
    path = graphs / "layer00.safetensors"
    path.write_bytes(path.read_bytes()[:-50])
    assert_one_line(run(tmp_path / "run", "project", "masked_lm"), "layer00.safetensors: has changed")
    with pytest.raises(FormatError, match=r"layer00\.safetensors: truncated"), open_graphs(path):
        pass


def test_students_can_be_fitted_anew_beside_what_was_measured_with_the_old(at, tmp_path):
    for dimension in (2, 3):
        section = SECTION | {"projection": SECTION["projection"] | {"dimension": dimension}}
        if dimension == 2:
            blocks = copy_of(at, tmp_path / "run", masked_lm=section) / "blocks"
        else:
            configure(tmp_path / "run", masked_lm=section)
        for command in ("fit-blocks", "evaluate-blocks", "time-blocks"):
            succeed(tmp_path / "run", command)
    student = next(blocks.rglob("projections/*.safetensors"))
    student.write_bytes(student.read_bytes()[:-1] + b"x")
    assert_one_line(run(tmp_path / "run", "evaluate-blocks"), f"{student.name}: has changed since stage fit_blocks")


@pytest.mark.parametrize("command", [("sweep", "masked_lm"), ("replace",)])
def test_a_layer_or_a_seed_that_nobody_learned_is_named_in_one_line(at, tmp_path, command):
    folder = copy_of(at, tmp_path / "run", student_seeds=[1, 3])
    assert_one_line(run(tmp_path / "run", *command), "projections/seed3")
    configure(tmp_path / "run", masked_lm=SECTION)
    (folder / "projections/seed2/layer01.safetensors").unlink()
    assert_one_line(run(tmp_path / "run", *command), "seed2/layer01.safetensors")


def test_a_run_with_another_dimension_reuses_model_and_graphs(at, tmp_path):
    """Of the steps, those are taken over that see the same settings and read the same files."""
    copy_of(at, tmp_path / "run")
    succeed(tmp_path / "run", "configuration", output="results/tiny/config.yaml")
    other = {"profile": "other", "masked_lm": {"projection": {"dimension": 2}}}
    (tmp_path / "run/other.yaml").write_text(yaml.safe_dump(other))
    both = ["results/tiny", "--config", CONFIG, "--config", "other.yaml"]
    done = run(tmp_path / "run", "reuse", *both, config=None)
    assert done.exit_code == 0, done.output
    made, before = (tmp_path / "run/results" / name / "masked_lm" for name in ("other", "tiny"))
    for name in ("corpus", "tokens", "model", "graphs"):
        files = [path for path in (before / name).rglob("*") if path.is_file()]
        assert files
        assert all((made / path.relative_to(before)).samefile(path) for path in files)
    assert not {"projections", "centroids", "sweep", "replaced", "blocks"} & {path.name for path in made.iterdir()}
    merged = yaml.safe_load((made.parent / "config.yaml").read_text())
    assert merged["masked_lm"]["projection"]["dimension"] == 2
    for command in ("project", "cluster"):
        succeed(tmp_path / "run", command, "masked_lm", config="results/other/config.yaml")
    assert_one_line(run(tmp_path / "run", "reuse", *both, config=None), "must be a new run")
