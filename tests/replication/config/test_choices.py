"""Choices, keys and defaults of the configuration are those of the code, and profiles have what their figures need."""

import copy
import inspect
from dataclasses import fields

import pytest
from changes import PROFILES, TASKS, WHOLE
from transformers import BartConfig, RobertaConfig, TrainingArguments

from replication.char_lm.models import ARCHITECTURES
from replication.char_lm.training import Recipe
from replication.config import captioning, char_lm, grids, masked_lm, retrofit, scaling, translation
from replication.config.reference import json_schema
from replication.graphs.grids import cluster_counts, predictor_class
from replication.results.measurements import CHARACTER_MODELS, PATTERN_MODELS
from replication.retrofit.rules import FIXED, OF_BLOCKS
from replication.retrofit.students import fit_students
from replication.timing.contenders import untrained_prediction
from replication.timing.scaling import measure
from replication.translation.forms import WITH_ANOTHER_CROSS_FORM
from sparselib.blocks.chunks import POOLINGS
from sparselib.blocks.fixed import MOST_FIXED_BLOCKS
from sparselib.blocks.predictors import METRICS
from sparselib.forms import FORMS
from sparselib.huggingface.gold import gold_rule
from sparselib.masks import HEAD_COMBINATIONS, RANDOM_SCOPES
from sparselib.projections import LOSSES, fit_projection

DEFINITIONS = json_schema()["$defs"]
METHODS, RULES = (DEFINITIONS[name]["discriminator"]["mapping"] for name in ("Listed", "ListedRule"))
OF_TOKENS = {"Distance", "Clustering"}
SWEPT = ("masked_lm", "translation")


@pytest.fixture(params=WHOLE)
def profile(request) -> dict:
    return copy.deepcopy(PROFILES[request.param])


def properties(name: str) -> dict[str, dict]:
    return DEFINITIONS[name.rpartition("/")[2]]["properties"]


def keys(section: type) -> set[str]:
    return {field.alias or name for name, field in section.model_fields.items()}


def required(section: type) -> set[str]:
    return {field.alias or name for name, field in section.model_fields.items() if field.is_required()}


def defaults(section: type) -> dict[str, object]:
    fields = section.model_fields.items()
    return {name: field.default for name, field in fields if not field.is_required() and field.default is not None}


@pytest.mark.parametrize("name", [name for name in PROFILES if name.startswith("paper")])
def test_profiles_of_the_papers_ask_a_cluster_for_the_papers_resources(name):
    assert PROFILES[name]["scale"] == "paper"


def test_news_is_translated_as_the_talks_are():
    news = PROFILES["paper-news"]
    assert news.keys() == {"profile", "seed", "student_seeds", "scale", "forms"}
    (news,), talks = news["forms"].values(), PROFILES["paper"]["forms"]["documents"]
    assert news["corpus"].keys() == talks["corpus"].keys()
    assert news | {"corpus": None} == talks | {"corpus": None}


def test_coco_is_described_with_the_models_of_the_default_profile():
    coco, ours = (PROFILES[name]["captioning"] for name in ("paper-captions", "demo"))
    assert coco.keys() == ours.keys()
    assert (coco["models"], coco["seeds"]) == (ours["models"], ours["seeds"])


def test_tasks_are_all_sections():
    assert set(TASKS) == {
        name for profile in PROFILES.values() for name, value in profile.items() if isinstance(value, dict)
    }


@pytest.mark.parametrize(
    ("name", "definition"), [*METHODS.items(), *((name, RULES[name]) for name in sorted(OF_TOKENS))]
)
def test_a_predictor_takes_the_arguments_of_its_section(name, definition):
    predictor = predictor_class(name)
    arguments = {field.name: field.default for field in fields(predictor) if field.name not in ("seed", "centroids")}
    arguments |= {"clusters": None} if predictor.needs.centroids else {}
    own = properties(definition)
    assert own.keys() - {"predictor"} <= arguments.keys()
    for key, value in own.items():
        if "default" in value:
            assert value["default"] == arguments[key]


def test_choices_are_those_of_the_code():
    projection = properties("Projection")
    assert projection["loss"]["enum"] == list(LOSSES)
    assert properties("BigBird")["random_scope"]["enum"] == list(RANDOM_SCOPES)
    assert properties("Factorised")["heads"]["enum"] == list(HEAD_COMBINATIONS)
    signature = inspect.signature(fit_projection).parameters
    assert projection.keys() == signature.keys() - {"batches", "seed", "chunks", "edges"} | {
        "batch_size"
    }  # the size of those batches
    blocks = properties("Blocks")
    assert blocks["pooling"]["enum"] == list(POOLINGS)
    assert blocks["metric"]["enum"] == list(METRICS)


def test_forms_are_those_of_the_code():
    forms = properties("Run")["forms"]["items"]["enum"]
    assert set(forms) == {*FORMS, *WITH_ANOTHER_CROSS_FORM}
    assert properties("TranslatorTraining")["attention_form"]["enum"] == list(FORMS)


def test_defaults_are_those_of_the_libraries():
    arguments = {field.name: field.default for field in fields(TrainingArguments)}
    for section in (masked_lm.Training, captioning.CaptionerTraining):
        own = {"mask_probability", "causal_steps", "held_out", "patience"}
        assert keys(section) - own <= arguments.keys()
        assert defaults(section).items() <= (arguments | {"causal_steps": 0}).items()
    assert defaults(captioning.CaptionerArchitecture).items() <= BartConfig().to_dict().items()
    assert keys(captioning.CaptionerArchitecture) <= inspect.signature(BartConfig).parameters.keys()
    ours = {"tied_query_key": False, "sinusoidal_positions": False, "normalizer": "entmax15"}
    assert defaults(masked_lm.NewModel).items() <= (RobertaConfig().to_dict() | ours).items()
    signature = inspect.signature(fit_projection).parameters
    assert {key: signature[key].default for key in defaults(grids.Projection).keys() - {"batch_size"}} == {
        key: value for key, value in defaults(grids.Projection).items() if key != "batch_size"
    }


def test_settings_of_scaling_are_what_is_measured(profile):
    assert keys(scaling.Scaling) - {"predictor"} == inspect.signature(measure).parameters.keys() - {
        "seed",
        "device",
        "predict",
    }
    assert keys(scaling.ScalingPredictor) <= inspect.signature(untrained_prediction).parameters.keys()
    for key in ("lengths", "densities"):
        assert profile["scaling"][key] == sorted(profile["scaling"][key])


def test_grids_of_a_profile_are_in_order(profile):
    for settings in (profile[task] for task in SWEPT):
        for section in (settings, settings["replaced"]) if "windows" in settings["replaced"] else (settings,):
            assert section["windows"] == sorted(section["windows"])
            for method in section["methods"].values():
                thresholds = method.get("threshold", [])
                assert thresholds == sorted(thresholds)


def test_character_models_are_what_their_names_say(profile):
    """And models that are compared differ in nothing else."""
    models = profile["char_lm"]["models"]
    assert list(models) == list(CHARACTER_MODELS)
    assert keys(char_lm.CharacterModels) == set(CHARACTER_MODELS)
    assert required(char_lm.CharacterModels) == set()
    budgets = {name: settings.pop("top_k", None) for name, settings in models.items()}
    assert budgets.pop("transformer-xl-top-k") < models["transformer-xl"]["memory_length"]
    assert {name: k for name, k in budgets.items() if k} == {"adaptive-span-top-32": 32, "adaptive-span-top-8": 8}
    assert models["block"] == models["transformer-xl"] | {"memory_length": 0}
    assert models["transformer-xl-top-k"] == models["transformer-xl"]
    assert models["adaptive-span-top-32"] == models["adaptive-span-top-8"] == models["adaptive-span"]


def test_settings_of_character_models_are_what_they_take():
    shared = keys(char_lm.SharedSizes)
    sections = {
        "transformer_xl": char_lm.TransformerXL,
        "adaptive_span": char_lm.AdaptiveSpan,
        "matrix_transformer": char_lm.MatrixModel,
    }
    assert sections.keys() == ARCHITECTURES.keys()
    for name, section in sections.items():
        taken = inspect.signature(ARCHITECTURES[name]).parameters.keys() - {"vocab_size", "normalizer", "forms"}
        assert shared | (keys(section) - {"architecture", "top_k", "factorised"}) == taken
        assert required(section) - {"architecture"} == taken - shared
    assert keys(char_lm.Recipe) == {field.name for field in fields(Recipe)}
    assert defaults(char_lm.Recipe) == {
        field.name: field.default for field in fields(Recipe) if isinstance(field.default, str)
    }


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


@pytest.mark.parametrize("name", sorted(set(WHOLE) - {"smoke"}))
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
    assert 8 in cluster_counts(settings["methods"])["kmeans"]


def test_options_of_translators_are_fairseqs():
    pytest.importorskip("fairseq")
    from fairseq import options

    from replication.translation.fairseq import transformer

    parser = options.get_training_parser()
    transformer.SparseTransformer.add_args(parser)
    for group in ("lr_scheduler", "optimizer"):
        assert group in {action.dest for action in parser._actions}
    # Options of Adam and of the schedules, and PyTorch's.
    known = {action.dest for action in parser._actions} | {"warmup_updates", "weight_decay", "total_num_update"}
    assert keys(translation.TranslatorTraining) | keys(translation.TranslatorArchitecture) <= known | {
        "matmul_precision"
    }
    assert properties("TranslatorTraining")["attention_cross_form"]["enum"] == transformer.CROSS_FORMS


def test_settings_of_normalizer_speed_are_what_is_measured():
    pytest.importorskip("fairseq")
    from replication.translation.speed import measure

    trained = {"corpus", "words", "merges", "architecture", "training", "top_k"}
    given = {"data", "references", "words", "models"}
    assert keys(translation.NormalizerSpeed) - trained == inspect.signature(measure).parameters.keys() - given


def test_normalizers_are_those_of_the_code():
    pytest.importorskip("fairseq")
    from replication.translation.fairseq.normalizers import IMPLEMENTATIONS, NORMALIZERS

    training = properties("TranslatorTraining")
    assert training["attention_normalizer"]["enum"] == list(NORMALIZERS)
    assert training["attention_implementation"]["enum"] == list(IMPLEMENTATIONS)


@pytest.mark.parametrize(
    ("gold", "valid"),
    [(name, True) for name in ("entmax:1.5", "entmax:2", "mass:0.95", "mass:1", "top:8")]
    + [
        (name, False)
        for name in ("entmax:1", "entmax:2.5", "mass:1.5", "mass:0.0", "top:0", "top:1.5", "most:3", "mass", "top:8\n")
    ],
)
def test_rules_of_what_a_head_needs_are_those_of_the_code(gold, valid):
    settings = PROFILES["demo"]["retrofit"] | {"gold": gold}
    if valid:
        assert retrofit.Retrofit.model_validate(settings).gold == gold
        gold_rule(gold)
    else:
        with pytest.raises(ValueError, match=r"must be entmax:1\.5, mass:0\.95, top:8"):
            retrofit.Retrofit.model_validate(settings)
        if not gold.endswith("\n"):
            with pytest.raises(ValueError, match="gold"):
                gold_rule(gold)


def test_rules_that_select_are_those_of_the_code():
    rules = FIXED | OF_BLOCKS
    assert RULES.keys() == rules.keys() | OF_TOKENS
    for name, rule in rules.items():
        given = {"self", "students", "block", "page", "sample", "stride"}
        taken = inspect.signature(rule).parameters.keys() - given
        assert properties(RULES[name]).keys() - {"predictor"} == taken
    given = {"batches", "normalizer", "clusters", "block_clusters", "block", "seed"}
    assert keys(retrofit.Students) == inspect.signature(fit_students).parameters.keys() - given
