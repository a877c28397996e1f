"""Values that cannot work together are refused by the path of a key, and so are files that are missing."""

import json
import os
import re
from pathlib import Path

import pytest
from changes import PAIRS, PROFILES, changed, problems

from replication.config import load
from replication.files.paths import ROOT
from sparselib.huggingface.guarantee import sequences_needed

DEMO, SMOKE = PROFILES["demo"], PROFILES["smoke"]


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_can_work(name):
    missing = problems(PROFILES[name])
    assert [line for line in missing if "got 'data/" not in line] == []
    assert problems(PROFILES[name], files=False) == []
    assert load(ROOT / f"config/{name}.yaml").profile == name


FOLDER = {"source": "folder", "path": "nowhere"}
TEXT = {"source": "text", "path": "nowhere"}
PAIR = {"source": "bible", "valid": ["Jude"], "test": ["Philemon"]}
LACKING = {"source": "bible", "valid": ["Jude"]}
KMEANS = {"predictor": "Clustering", "clusters": [4, 8]}
FIXED = {"pattern": "fixed", "stride": 8}
STRIDED = {"pattern": "strided", "stride": 8, "summary": 1}
TRAINING = {"lr": 0.1, "warmup_updates": 1, "max_tokens": 100, "max_update": 3}
A_NAME = "must be a name of letters, digits, '-', '_' and '.', got"
SWEPT = ", ".join(DEMO["masked_lm"]["methods"])
AMONG = "must be among the Clustering clusters of methods (8, 32, 64, 128), got"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("masked_lm/layers", 2, "masked_lm.layers: must be 3 as model.num_hidden_layers, got 2"),
        ("masked_lm/layers", 4, "masked_lm.layers: must be 3 as model.num_hidden_layers, got 4"),
        ("masked_lm/model/num_attention_heads", 5, "masked_lm.model.num_attention_heads: must divide hidden_size 128, got 5"),
        ("masked_lm/training/patience", 3, "masked_lm.training.held_out: missing key; patience needs it"),
        ("masked_lm/training/logging_steps", 6001,
         "masked_lm.training.logging_steps: must be at most max_steps 6000, got 6001"),
        ("masked_lm/tokenizer", {}, "masked_lm.tokenizer: must have one of vocab_size and pretrained, got none"),
        ("masked_lm/tokenizer", {"vocab_size": 300, "pretrained": "x"},
         "masked_lm.tokenizer: must have one of vocab_size and pretrained, got both"),
        ("masked_lm/training/mask_probability", 1e-12,
         "masked_lm.training.mask_probability: must mask a token of 8 sequences, got 1e-12"),
        ("masked_lm/evaluation/mask_probability", 1e-12,
         "masked_lm.evaluation.mask_probability: must mask a token of 6 sequences, got 1e-12"),
        ("masked_lm/corpus", FOLDER, "masked_lm.corpus.path: must be an existing folder, got 'nowhere'"),
        ("masked_lm/unseen", {"other": FOLDER}, "masked_lm.unseen.other.path: must be an existing folder, got 'nowhere'"),
        ("masked_lm/unseen", {"a/b": LACKING}, f"masked_lm.unseen.a/b: {A_NAME} 'a/b'"),
        ("masked_lm/unseen", {"a'b": LACKING}, f"masked_lm.unseen.a'b: {A_NAME} \"a'b\""),
        ("masked_lm/unseen", {"held-out": LACKING},
         "masked_lm.unseen.held-out: must have another name: held-out is the validation split of corpus"),
        ("masked_lm/methods/my method", KMEANS, f"masked_lm.methods.my method: {A_NAME} 'my method'"),
        ("masked_lm/methods/.hidden", KMEANS, f"masked_lm.methods..hidden: {A_NAME} '.hidden'"),
        ("masked_lm/compare", [{"method": "window", "against": ["landmarks"], "of": "perplexity"}],
         f"masked_lm.compare[0].against: must be among methods ({SWEPT}), got 'landmarks'"),
        ("masked_lm/compare", [{"method": "landmarks", "against": ["window"]}],
         f"masked_lm.compare[0].method: must be among methods ({SWEPT}), got 'landmarks'"),
        ("masked_lm/compare", [{"method": "window", "against": ["window"]}],
         "masked_lm.compare[0].against: must have other methods than method, got 'window'"),
        ("masked_lm/compare", [{"method": "window", "against": ["routing"], "of": "bleu"}],
         "masked_lm.compare[0].of: must be recall or perplexity, got 'bleu'"),
        ("masked_lm/tag_clusters", 9, f"masked_lm.tag_clusters: {AMONG} 9"),
        ("masked_lm/replaced", {"windows": [0], "methods": {"sparsefinder-kmeans": KMEANS | {"clusters": [8, 9]}}},
         f"masked_lm.replaced.methods.sparsefinder-kmeans.clusters: {AMONG} 9"),
        ("masked_lm/replaced", {"windows": [0], "methods": {"routing": {"predictor": "Routing", "clusters": 3}}},
         "masked_lm.replaced.methods.routing.clusters: "
         "must be among the Routing clusters of methods (4, 8, 16, 32, 64, 128, 256, 512), got 3"),
        ("masked_lm/replaced", {"windows": [0]},
         "masked_lm.replaced: must have `budgets`, or `windows` and `methods`; got windows"),
        ("masked_lm/replaced", {"windows": [0], "methods": {"window": {"predictor": "Nothing"}}, "budgets": {}},
         "masked_lm.replaced: must have `budgets`, or `windows` and `methods`; got windows, methods, budgets"),
        ("masked_lm/methods/sparsefinder-kmeans/clusters", [2, 4, 8, 32, 64, 128, 1000000],
         "masked_lm.methods.sparsefinder-kmeans.clusters: must be at most cluster_points 3000, got 1000000"),
        ("masked_lm/blocks/clusters", [4, 3001], "masked_lm.blocks.clusters: must be at most cluster_points 3000, got 3001"),
        ("masked_lm/methods/sparsefinder-kmeans/top_k", [1, 9],
         "masked_lm.methods.sparsefinder-kmeans.top_k: must be at most 8, the smallest number of clusters, got 9"),
        ("masked_lm/methods/reformer/buckets", [2, 7],
         "masked_lm.methods.reformer.buckets: must be even, since buckets come in pairs, got 7"),
        ("translation/architecture/decoder_attention_heads", 3,
         "translation.architecture.decoder_attention_heads: must divide decoder_embed_dim 128, got 3"),
        ("translation/corpus/kjv-en", FOLDER, "translation.corpus.kjv-en.path: must be an existing folder, got 'nowhere'"),
        ("translation/corpus/kjv-en", LACKING, "translation.corpus.kjv-en.test: missing key"),
        ("translation/corpus", {"en-en": PAIR}, "translation.corpus.en-en: must be two different languages, got en-en"),
        ("translation/corpus", {"en-it": PAIR},
         "translation.corpus.en-it: must be two of en, grc, kjv for source bible, got it"),
        ("translation/corpus", {"english": PAIR},
         "translation.corpus.english: must be two languages such as en-de, got 'english'"),
        ("translation/pretraining", {"corpus": {"grc-en": PAIR}, "training": TRAINING},
         "translation.pretraining.corpus: must have the pairs of corpus, got none for kjv-en"),
        ("translation/methods/reformer/buckets", 3,
         "translation.methods.reformer.buckets: must be even, since buckets come in pairs, got 3"),
        ("translation/training/lr_scheduler", "polynomial_decay",
         "translation.training.total_num_update: missing key; lr_scheduler polynomial_decay needs it"),
        ("translation/training", {**TRAINING, "max_update": 0}, "translation.training.max_update: must be at least 1, got 0"),
        ("translation/training", {key: TRAINING[key] for key in ("lr", "warmup_updates", "max_tokens")},
         "translation.training.max_update: missing key; give max_update or max_epoch"),
        ("translation/training/attention_normalizer", "topk",
         "translation.training.attention_k: missing key; attention_normalizer topk needs it"),
        ("translation/training/attention_normalizer", "entmax",
         "translation.training.attention_alpha: missing key; attention_normalizer entmax needs it"),
        ("translation/training/attention_k", 8,
         "translation.training.attention_k: must be left out unless attention_normalizer is topk, got 8"),
        ("translation/training/attention_form", "Full",
         "translation.training.attention_budget: missing key; attention_form Full needs it"),
        ("forms/documents/training/attention_form", "Window",
         "forms.documents.training.attention_budget: missing key; attention_form Window needs it"),
        ("forms", {}, "forms: must have sentences or documents, got none"),
        ("forms/sentences/corpus/kjv-en", LACKING, "forms.sentences.corpus.kjv-en.test: missing key"),
        ("normalizer_speed/architecture/encoder_attention_heads", 5,
         "normalizer_speed.architecture.encoder_attention_heads: must divide encoder_embed_dim 64, got 5"),
        ("normalizer_speed/corpus", {"grc-en": PAIR, "kjv-en": PAIR},
         "normalizer_speed.corpus: must have at most 1 entry, got a mapping of 2"),
        ("char_lm/sizes/heads", 5, "char_lm.sizes.heads: must divide dimension 96, got 5"),
        ("char_lm/recipe/log_every", 2001, "char_lm.recipe.log_every: must be at most steps 2000, got 2001"),
        ("char_lm/corpora", {"mine": TEXT}, "char_lm.corpora.mine.path: must be an existing file or folder, got 'nowhere'"),
        ("patterns", {}, "patterns: must have text or images, got none"),
        ("patterns/text/models/dense/length", 255,
         "patterns.text.models.dense.length: must be at least recipe.length 256, got 255"),
        ("patterns/text/models/fixed/factorised", FIXED,
         "patterns.text.models.fixed.factorised.summary: missing key; pattern fixed needs it"),
        ("patterns/text/models/strided/factorised", STRIDED,
         "patterns.text.models.strided.factorised.summary: must be left out for pattern strided, got 1"),
        ("patterns/images/recipe/length", 64,
         "patterns.images.recipe.length: must be 65 for digits: a start symbol and 64 pixels, got 64"),
        ("patterns/images/corpora/digits/images/valid", 161,
         "patterns.images.corpora.digits.images.valid: must be a multiple of rows.valid 16, got 161"),
        ("patterns/images/corpora/digits/images/train", 1456,
         "patterns.images.corpora.digits.images: must be at most 1797 in total, got 1808"),
        ("captioning/architecture/encoder_attention_heads", 5,
         "captioning.architecture.encoder_attention_heads: must divide d_model 64, got 5"),
        ("captioning/shown", 301, "captioning.shown: must be at most source.images.test 300, got 301"),
        ("captioning/models", {"top-8": {"top_k": 8}}, "captioning.models.softmax: missing key"),
        ("captioning/models/softmax", {"top_k": 8},
         "captioning.models.softmax.top_k: must be left out for the model softmax, got 8"),
        ("captioning/source", {"source": "karpathy", "captions": "nowhere", "regions": "."},
         "captioning.source.captions: must be an existing file, got 'nowhere'"),
        ("captioning/source", {"source": "karpathy", "captions": __file__, "regions": "nowhere"},
         "captioning.source.regions: must be an existing folder, got 'nowhere'"),
        ("retrofit/corpus", FOLDER, "retrofit.corpus.path: must be an existing folder, got 'nowhere'"),
        ("retrofit/rules/a b", KMEANS, f"retrofit.rules.a b: {A_NAME} 'a b'"),
        ("retrofit/rules/sparsefinder-kmeans/top_k", 5,
         "retrofit.rules.sparsefinder-kmeans.top_k: must be at most 2, the smallest number of clusters, got 5"),
        ("retrofit/rules/sparsefinder-v2/clusters", 3001,
         "retrofit.rules.sparsefinder-v2.clusters: must be at most students.points 3000, got 3001"),
        ("retrofit/block", 129, "retrofit.block: must be at most length 128, got 129"),
        ("retrofit/sequences/calibrate", 20,
         "retrofit.sequences.calibrate: must be at least 100 for a recall of 0.95, got 20"),
    ],
)  # fmt: skip
def test_a_problem_is_reported_by_its_path(path, value, expected):
    assert problems(changed(path, value)) == [expected]


@pytest.mark.parametrize(
    "training",
    [
        {"attention_normalizer": "topk", "attention_k": 8},
        {"attention_normalizer": "entmax", "attention_alpha": 1.3},
        {"attention_form": "Full", "attention_budget": 8},
        {"lr_scheduler": "polynomial_decay", "total_num_update": 9},
    ],
    ids=str,
)
def test_options_with_what_they_need_can_work(training):
    assert problems(changed("translation/training", TRAINING | training)) == []


@pytest.mark.parametrize("recall", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_as_many_sequences_are_required_as_the_guarantee_needs(recall, confidence):
    config = changed("retrofit/recalls", [recall])
    config["retrofit"]["confidence"] = confidence
    needed = sequences_needed(1 - recall, confidence)
    for count, expected in ((2 * needed, 0), (2 * needed - 1, 1)):
        config["retrofit"]["sequences"]["calibrate"] = count
        assert len(problems(config)) == expected


def test_results_that_cannot_be_written_are_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert problems(SMOKE) == []
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: path != Path("results"))
    expected = "profile: must have a folder results/smoke for its results, but"
    assert problems(SMOKE) == [
        f"{expected} results is read-only; in a container, mount a folder of yours there (profiles/README.md)"
    ]
    (tmp_path / "results/smoke").write_text("a file")
    assert problems(SMOKE) == [f"{expected} results/smoke is a file"]
    assert problems(SMOKE, files=False) == []


def test_pretraining_needs_no_test_split():
    config = changed("translation/pretraining", {"corpus": dict.fromkeys(PAIRS, LACKING), "training": TRAINING})
    assert problems(config) == []


PATHS = {
    "masked_lm/corpus": {"source": "folder", "path": "~/text"}, "masked_lm/tokenizer/pretrained": "~/tokenizer",
    "masked_lm/corpus/name": "~/set", "translation/corpus/en-de": {"source": "folder", "path": "~/text"},
    "char_lm/corpora/new": {"source": "text", "path": "~/text"}, "retrofit/model": "~/model", "checkpoints": "~/models",
    "captioning/source": {"source": "karpathy", "captions": "~/captions", "regions": "~/regions"},
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_paths_of_a_home_are_refused_with_the_path_to_write(path):
    value = PATHS[path]
    if path.endswith("/name"):
        path, value = "masked_lm/corpus", {"source": "hub", "name": value}
    if path.endswith("/pretrained"):
        path, value = "masked_lm/tokenizer", {"pretrained": value}
    found = problems(changed(path, value))
    assert found
    for line in found:
        assert "must be a path without ~, which only shells expand, got '~/" in line
        assert f"write {Path.home()}/" in line


@pytest.mark.parametrize("path", ["masked_lm/tokenizer", "retrofit/model"])
def test_a_model_with_a_space_is_an_existing_folder(tmp_path, path):
    def value(name):
        return {"pretrained": name} if path.endswith("tokenizer") else name

    (found,) = problems(changed(path, value("my model")))
    assert found.endswith("must be an existing folder or a name on the hub, got 'my model'")
    (tmp_path / "my model").mkdir()
    assert problems(changed(path, value(str(tmp_path / "my model")))) == []


@pytest.mark.parametrize(
    ("settings", "keys", "problem"),
    [
        ({"model_type": "distilbert", "n_layers": 3}, {}, None),
        ({"model_type": "distilbert", "n_layers": 4}, {}, "layers: must be 4 in "),
        ({"model_type": "mpnet"}, {}, "model.pretrained: must be one of albert, bert, .*, got mpnet in "),
        ({"model_type": "bart"}, {}, "model.pretrained: must be one of albert, bert, .*, got bart in "),
        ({}, {"attention_probs_dropout_prob": 0.0}, None),
        ({"model_type": "distilbert"}, {"hidden_dropout_prob": 0.1},
         "model.hidden_dropout_prob: must be left out, because the config.json of .* has no such key"),
        ({"model_type": "modernbert", "local_attention": 254}, {}, None),
        ({"model_type": "modernbert", "local_attention": 128}, {}, "length: must be at most 65 for the windows of .*, got 128"),
        ({"model_type": "modernbert", "local_attention": 128, "layer_types": ["full_attention"]}, {}, None),
        ({"model_type": "ultrabert", "sliding_window": 64}, {}, "length: must be at most 65 for the windows of .*, got 128"),
    ],
)  # fmt: skip
def test_a_pretrained_encoder_is_judged_by_its_configuration(tmp_path, settings, keys, problem):
    if settings:
        (tmp_path / "config.json").write_text(json.dumps(settings))
    profile = changed("masked_lm/model", {"pretrained": str(tmp_path), **keys})
    profile["masked_lm"] |= {"layers": 3, "length": 128}
    found = problems(profile)
    assert (found == []) if problem is None else re.fullmatch(f"masked_lm.{problem}.*", *found)


def test_half_precision_needs_gpus():
    profile = changed("translation/training/fp16", True) | {"gpus": 0}
    assert problems(profile) == ["translation.training.fp16: must be false without GPUs (gpus: 0), got true"]
    assert problems(profile | {"gpus": 1}) == []


def test_a_batch_must_hold_a_token_and_the_end_mark():
    (found,) = problems(changed("translation/training/max_tokens", 1))
    assert found.startswith("translation.training.max_tokens: must be at least 2")


def test_paths_with_braces_are_refused():
    (found,) = problems(changed("retrofit/corpus", {"source": "folder", "path": "texts/{mine}"}))
    assert "must be a path without braces, which Snakemake takes for wildcards, got 'texts/{mine}'" in found


IGNORED = {
    "attention_alpha": ({"attention_normalizer": "entmax15", "attention_alpha": 1.3}, "unless attention_normalizer is entmax"),
    "attention_k": ({"attention_normalizer": "entmax15", "attention_k": 8}, "unless attention_normalizer is topk"),
    "attention_implementation": (
        {"attention_normalizer": "topk", "attention_k": 8, "attention_implementation": "entmax"}, "must be sparselib",
    ),
    "attention_budget": ({"attention_budget": 8}, "must be left out without attention_form"),
    "attention_cross_form": ({"attention_cross_form": "Full"}, "must be left out without attention_form"),
    "total_num_update": ({"total_num_update": 9}, "must be left out unless lr_scheduler is polynomial_decay"),
    "save_interval_updates": ({"keep_interval_updates": 2}, "missing key; keep_interval_updates needs it"),
}  # fmt: skip


@pytest.mark.parametrize("key", IGNORED)
def test_keys_that_would_be_ignored_are_refused(key):
    settings, message = IGNORED[key]
    (found,) = problems(changed("translation/training", TRAINING | settings))
    assert found.startswith(f"translation.training.{key}: ")
    assert message in found
