"""Definitions shared by all rules: the run's configuration, its models, and what several rules share."""

import shlex
from dataclasses import asdict
from pathlib import Path

from replication.corpora.inputs import content_of, files_in, files_of
from replication.layout import (
    ALL_SPLITS,
    SPLITS,
    TRANSLATOR_FILES,
    Captioning,
    GraphTask,
    MaskedLM,
    NormalizerSpeed,
    ParallelText,
    Retrofit,
    Symbols,
    Translation,
    reach_table,
    results_folder,
    scaling_table,
    tokenizer_files,
)
from replication.places import (
    graph_tasks,
    parallel_places,
    region_features,
    symbol_places,
    token_places,
)
from replication.stages import MODULE_OF
from replication.stages.ledger import decisive
from replication.trained import (
    CONTENDERS,
    cell_jobs,
    members,
    trained_models,
)
from workflow.closure import closure_hash, notebook_hash
from workflow.environment import use_own_environment
from workflow.notebooks import measured, notebooks
from workflow.resources import resources_of

PROFILE = RUN.profile
RESULTS = results_folder(PROFILE)
LOGS = RESULTS / "logs"
# Configuration file that jobs read. It is no input, because the settings that a job uses are among its params.
CONFIGURATION = RESULTS / "config.yaml"
# All settings but those that say where the run takes place.
DECISIVE = decisive(RUN)
SEEDS = RUN.student_seeds
# Stored runs, each with its ledger.
REPORTED = sorted(path.parent.name for path in Path("reported").glob("*/claims.csv"))
# On a cluster, the run itself has no cores, and a job may use all cores of its node.
CORES = workflow.resource_settings.cores or RUN.node_cores
# Small models gain little from more cores than this; other jobs use the rest.
HALF = max(1, CORES // 2)

GRAPH_TASKS = graph_tasks(RUN)
TOKEN_PLACES = token_places(RUN)
PARALLEL_PLACES = parallel_places(RUN)
SYMBOL_PLACES = symbol_places(RUN)
MODELS = trained_models(RUN)
NOTEBOOKS = {notebook.name: notebook for notebook in notebooks(RUN, REPORTED)}
FIGURES = [name for name, notebook in NOTEBOOKS.items() if notebook.is_figure]
EXECUTED = [RESULTS / "notebooks" / f"{name}.ipynb" for name in NOTEBOOKS]
PICTURES = [
    RESULTS / "figures" / f"{name}.{format}"
    for name in FIGURES
    for format in ("svg", "pdf")
]


def either(names):
    """Return a wildcard pattern that matches any of the names."""
    return "|".join(dict.fromkeys(names)) or "none"


wildcard_constraints:
    task=either(GRAPH_TASKS),
    source="[a-z]+",
    target="[a-z]+",
    seed=r"\d+",


def needs(rule):
    """Return the resources that a rule requests on a cluster."""
    return resources_of(rule, RUN.scale, RUN.gpus)


def picked(section, *keys):
    """Return some keys of a section as plain values, which Snakemake compares with the last run's."""
    given = section.given()
    return {key: given[key] for key in keys if key in given}


def text_settings(place):
    """Return what determines a text as plain values; its tokenization has parameters of its own.

    A user's files are inputs too, but Snakemake compares those by time, and a file can be replaced by an older one.
    """
    names = ("splits", "tagged", "pair", "block_words", "aligned")
    values = {name: getattr(place, name) for name in names if hasattr(place, name)}
    return values | {
        "corpus": place.corpus.given(),
        "content": content_of(text_inputs(place)),
    }


def text_inputs(place):
    """Return the user's files that a text is read from."""
    return files_of(place.corpus, place.splits, getattr(place, "pair", ()))


def symbol_inputs(wildcards):
    """Return the user's files that a text of characters is read from."""
    return files_of(symbols(wildcards).corpora[wildcards.corpus], ALL_SPLITS)


def text_of(places, name):
    """Return an input function for the user's files of a place, whose name can have wildcards."""
    return lambda wildcards: text_inputs(places[name.format(**wildcards)])


def own_files():
    """Return the files of the user and of this checkout that jobs read."""
    for place in (*TOKEN_PLACES.values(), *PARALLEL_PLACES.values()):
        yield from text_inputs(place)
    for place, (section, _) in SYMBOL_PLACES.items():
        yield from files_of(section.corpora[place.rpartition("/")[2]], ALL_SPLITS)
    if RUN.captioning:
        yield from files_of(RUN.captioning.source, ALL_SPLITS)
    if RUN.masked_lm:
        yield from files_in(RUN.masked_lm.tokenizer.pretrained)
        yield from files_in(getattr(RUN.masked_lm.model, "pretrained", None))
    if RUN.retrofit:
        yield from files_in(RUN.retrofit.model)
    for folder in ("kernels", "notebooks", "replication", "sparselib", RUN.checkpoints):
        yield from files_in(folder)


def local_model(name):
    """Return an input function for the files of a pretrained model or tokenizer in a folder of the user."""
    return lambda wildcards: files_in(name)


def shipped(name):
    """Return whether a model has a checkpoint."""
    return bool(
        RUN.checkpoints and Path(RUN.checkpoints, name, "weights.safetensors").exists()
    )


def checkpoint_files(model):
    """Return the names of the files of a model's checkpoint."""
    trained = {"model.safetensors", "training.json", model.weights}
    return ["weights.safetensors", "made_by.json", *sorted({*model.files} - trained)]


def short_names(names):
    """Return notebooks by short target names: ``fig04_tradeoff``, ``fig04`` if it is unambiguous, ``recall`` for 01_recall."""
    matches = {}
    for name in names:
        stem = Path(name).name
        first, _, rest = stem.partition("_")
        for short in (rest,) if first.isdigit() else (stem, first):
            matches.setdefault(short, []).append(name)
    return {
        short: full[0]
        for short, full in matches.items()
        if len(set(full)) == 1 and short[0].isalpha() and short not in MODULE_OF
    }


def graphs_of(split):
    """Return an input function for a task's attention graphs, one file per layer."""

    def paths(wildcards):
        _, files, layers = GRAPH_TASKS[wildcards.task]
        return [files.graphs(split, layer) for layer in range(layers)]

    return paths


def task_settings(*keys):
    """Return a params function for some keys of the task's section."""
    return lambda wildcards: picked(GRAPH_TASKS[wildcards.task][0], *keys)


def pair_settings(wildcards):
    """Return the settings that determine the text of a language pair."""
    return text_settings(
        PARALLEL_PLACES[f"translation/{wildcards.source}-{wildcards.target}"]
    )


def corpus_files(files, splits):
    """Return the text files of both languages."""
    return [
        files.corpus(split, language)
        for split in splits
        for language in ("{source}", "{target}")
    ]


def form_place(wildcards):
    """Return the parallel text of a unit and language pair."""
    return PARALLEL_PLACES[
        f"forms/{wildcards.unit}/{wildcards.source}-{wildcards.target}"
    ]


def symbols(wildcards):
    """Return the configuration section of a corpus."""
    return SYMBOL_PLACES[f"{wildcards.lm}/{wildcards.corpus}"][0]


def imported_models():
    """Return the models that have checkpoints, by section and text.

    One job imports all models of a text, because starting a job per model would take longer than copying.
    """
    groups = {}
    for name, model in MODELS.items():
        section = Path(name).parts[0]
        # One job trains all normalisers, so they are imported only if all have checkpoints.
        needed = (
            [other for other in MODELS if Path(other).parts[0] == section]
            if section == "normalizer_speed"
            else [name]
        )
        if all(shipped(other) for other in needed):
            groups.setdefault((section, model.made_from), []).append(name)
    return groups


def ship_commands():
    """Return the shell commands that make checkpoints of all models, one command per stage."""
    of_stage = {}
    for name, model in MODELS.items():
        of_stage.setdefault(model.stage, []).append(name)
    checkpoints = RUN.checkpoints or "checkpoints"
    return " && ".join(
        f"replicate ship {shlex.join(names)} --config {CONFIGURATION} --checkpoints {shlex.quote(checkpoints)}"
        f' --code "$(python -m workflow.closure {stage})"'
        for stage, names in of_stage.items()
    )
