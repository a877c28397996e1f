"""What cannot work is refused before any job, by the path of its key; what can is let through."""

import copy
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from replication.files.paths import ROOT
from sparselib.huggingface.guarantee import sequences_needed
from workflow.checks import problems

DEMO = yaml.safe_load((ROOT / "config/demo.yaml").read_text())


def changed(path: str, value: object) -> dict:
    config = copy.deepcopy(DEMO)
    *above, key = path.split("/")
    section = config
    for name in above:
        section = section[name]
    section[key] = value
    return config


@pytest.mark.parametrize("name", ["demo", "smoke", "paper"])
def test_profiles_can_work(name):
    config = yaml.safe_load((ROOT / f"config/{name}.yaml").read_text())
    missing_text = [problem for problem in problems(config) if "data/" in problem]
    assert problems(config) == missing_text


FOLDER = {"source": "folder", "path": "nowhere"}
PAIR = DEMO["translation"]["corpus"]["en-de"]
GRAMMAR = DEMO["masked_lm"]["corpus"]
KMEANS = {"predictor": "Clustering", "clusters": [4, 8]}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("masked_lm/training/learning_rate", math.inf, "masked_lm.training.learning_rate: inf is no finite number"),
        ("masked_lm/projection/margin", math.nan, "masked_lm.projection.margin: nan"),
        ("masked_lm/methods/sparsefinder-distance/threshold", [0.5, math.nan],
         "masked_lm.methods.sparsefinder-distance.threshold.1: nan"),
        ("masked_lm/layers", 2, "masked_lm.layers: 2, and masked_lm.model.num_hidden_layers is 3"),
        ("masked_lm/layers", 4, "masked_lm.layers: 4"),
        ("masked_lm/model/num_attention_heads", 5, "masked_lm.model.num_attention_heads: 5 does not divide hidden_size 128"),
        ("masked_lm/training/logging_steps", 6001, "masked_lm.training.logging_steps: 6001, of 6000 steps"),
        ("masked_lm/training/mask_probability", 1e-12, "masked_lm.training.mask_probability: 1e-12 masks no token"),
        ("masked_lm/evaluation/mask_probability", 1e-12, "masked_lm.evaluation.mask_probability: 1e-12 masks no token"),
        ("masked_lm/corpus", FOLDER, "masked_lm.corpus.path: there is no folder nowhere"),
        ("masked_lm/unseen", {"other": FOLDER}, "masked_lm.unseen.other.path: there is no folder nowhere"),
        ("masked_lm/unseen", {"a/b": GRAMMAR}, "masked_lm.unseen.a/b: a name has letters"),
        ("masked_lm/unseen", {"a'b": GRAMMAR}, "masked_lm.unseen.a'b: a name has letters"),
        ("masked_lm/methods/my method", KMEANS, "masked_lm.methods.my method: a name has letters"),
        ("masked_lm/tag_clusters", 9, "masked_lm.tag_clusters: no Clustering of masked_lm.methods has 9 clusters"),
        ("masked_lm/replaced/methods/sparsefinder-kmeans/clusters", [2, 9],
         "masked_lm.replaced.methods.sparsefinder-kmeans.clusters: 9 are fitted by no Clustering of masked_lm.methods: 2, 4,"),
        ("masked_lm/replaced/methods/routing/clusters", 3, "masked_lm.replaced.methods.routing.clusters: 3"),
        ("masked_lm/methods/sparsefinder-kmeans/clusters", [2, 4, 8, 20, 1000000],
         "masked_lm.methods.sparsefinder-kmeans.clusters: 1000000 of them, and 3000 points to fit them to"),
        ("masked_lm/blocks/clusters", [4, 3001], "masked_lm.blocks.clusters: 3001 of them"),
        ("masked_lm/methods/sparsefinder-kmeans/top_k", [1, 3], "masked_lm.methods.sparsefinder-kmeans.top_k: 3 of 2 clusters"),
        ("masked_lm/methods/reformer/buckets", [2, 7], "masked_lm.methods.reformer.buckets: 7 is odd"),
        ("translation/architecture/decoder_attention_heads", 3,
         "translation.architecture.decoder_attention_heads: 3 does not divide decoder_embed_dim 128"),
        ("translation/corpus/en-de", FOLDER, "translation.corpus.en-de.path: there is no folder nowhere"),
        ("translation/corpus/en-de/sentences", {"train": 9, "valid": 9}, "translation.corpus.en-de.sentences: lacks test"),
        ("translation/corpus", {"en-en": PAIR}, "translation.corpus.en-en: is translated into"),
        ("translation/corpus", {"en-it": PAIR}, "translation.corpus.en-it: the grammar writes"),
        ("translation/methods/reformer/buckets", 3, "translation.methods.reformer.buckets: 3 is odd"),
        ("forms/sentences/corpus/fr-en/sentences", {"train": 9, "valid": 9}, "forms.sentences.corpus.fr-en.sentences: lacks"),
        ("normalizer_speed/architecture/encoder_attention_heads", 5, "normalizer_speed.architecture.encoder_attention"),
        ("char_lm/sizes/heads", 5, "char_lm.sizes.heads: 5 does not divide dimension 96"),
        ("char_lm/recipe/log_every", 2001, "char_lm.recipe.log_every: 2001, of 2000 steps"),
        ("char_lm/corpora", {"mine": {"source": "text", "path": "nowhere"}}, "char_lm.corpora.mine.path: nowhere is not there"),
        ("retrofit/corpus", FOLDER, "retrofit.corpus.path: there is no folder nowhere"),
        ("retrofit/rules/sparsefinder-kmeans/top_k", 5, "retrofit.rules.sparsefinder-kmeans.top_k: 5 of 4 clusters"),
        ("retrofit/block", 257, "retrofit.block: 257 tokens, of sequences of 256"),
        ("retrofit/sequences/calibrate", 20,
         "retrofit.sequences.calibrate: 20, of which half calibrates; a recall of 0.95 needs 50 there"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_named_by_its_path(path, value, said):
    (problem,) = problems(changed(path, value))
    assert problem.startswith(said)


@pytest.mark.parametrize("recall", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_as_many_sequences_are_asked_for_as_the_guarantee_needs(recall, confidence):
    config = changed("retrofit/recalls", [recall])
    config["retrofit"]["confidence"] = confidence
    needed = sequences_needed(1 - recall, confidence)
    for count, expected in ((2 * needed, 0), (2 * needed - 1, 1)):
        config["retrofit"]["sequences"]["calibrate"] = count
        assert len(problems(config)) == expected


def test_results_that_cannot_be_written_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = yaml.safe_load((ROOT / "config/smoke.yaml").read_text())
    assert problems(config) == []
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: path != Path("results"))
    assert problems(config) == ["profile: results cannot be written to, and results belong into results/smoke"]
    (tmp_path / "results/smoke").write_text("a file")
    assert problems(config) == ["profile: results/smoke is no folder, and results belong into results/smoke"]


def test_everything_is_named_at_once():
    config = changed("masked_lm/layers", 2)
    config["char_lm"]["sizes"]["heads"] = 5
    assert [problem.split(":")[0] for problem in problems(config)] == ["masked_lm.layers", "char_lm.sizes.heads"]


def test_a_folder_that_lacks_a_file(tmp_path):
    config = changed("masked_lm/corpus", {"source": "folder", "path": str(tmp_path)})
    (tmp_path / "train-1.txt.gz").touch()
    assert problems(config) == [f"masked_lm.corpus.path: {tmp_path} has no valid*"]
    (tmp_path / "valid.conllu").touch()
    assert problems(config) == []


def test_aligned_text_may_have_other_names(tmp_path):
    pair = {"source": "folder", "path": str(tmp_path), "names": {"test": "newstest"}}
    config = changed("translation/corpus", {"en-de": pair, "en-fr": DEMO["translation"]["corpus"]["en-fr"]})
    for name in ("train.en", "train.de.gz", "val.en", "val.de", "newstest.en"):
        (tmp_path / name).touch()
    assert problems(config) == [f"translation.corpus.en-de.path: {tmp_path} has no newstest.de"]
    (tmp_path / "newstest.de").touch()
    assert problems(config) == []


def test_what_aligned_text_says_beside_its_sentences_is_there_too(tmp_path):
    pair = {"source": "folder", "path": str(tmp_path), "keys": "strongs", "documents": "verses"}
    config = changed("translation/corpus", {"en-de": pair, "en-fr": DEMO["translation"]["corpus"]["en-fr"]})
    for name in ("train.en", "train.de", "valid.en", "valid.de", "test.en", "test.de", "train.verses", "valid.verses"):
        (tmp_path / name).touch()
    path = "translation.corpus.en-de.path"
    lacking = ["test.verses", "test.strongs.en", "test.strongs.de"]
    assert problems(config) == [f"{path}: {tmp_path} has no {name}" for name in lacking]
    for name in lacking:
        (tmp_path / f"{name}.gz").touch()
    assert problems(config) == []


def test_snakemake_says_so_before_any_job(tmp_path):
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(changed("masked_lm/layers", 2)))
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nolock", "--configfile", str(tmp_path / "bad.yaml")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "masked_lm.layers: 2, and masked_lm.model.num_hidden_layers is 3" in said
    assert "Traceback" not in said
    assert "Job stats" not in said
