"""What all rules share: the run's configuration, its models, and what a job needs beside its own files."""

from dataclasses import asdict
from pathlib import Path

from replication.files.seals import making
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
)
from replication.places import (
    graph_tasks,
    parallel_places,
    region_features,
    symbol_places,
    token_places,
)
from replication.stages import MODULE_OF
from replication.stages.ledger import WHERE_IT_RUNS, write_configuration
from replication.trained import (
    CONTENDERS,
    cell_jobs,
    cells_with_pronouns,
    members,
    trained_models,
)
from workflow.closure import closure, function_hash, notebook_closure
from workflow.notebooks import measured, notebooks
from workflow.resources import resources_of

PROFILE = RUN.profile
RESULTS = results_folder(PROFILE)
LOGS = RESULTS / "logs"
#: The configuration as jobs read it. Its time never counts: what a job reads of it is among the job's parameters.
CONFIGURATION = RESULTS / "config.yaml"
SEEDS = RUN.student_seeds
# Runs whose tables are kept, each with its ledger.
REPORTED = sorted(path.parent.name for path in Path("reported").glob("*/claims.csv"))
# On a cluster, a run has no cores of its own, and a job those of a node.
CORES = workflow.resource_settings.cores or RUN.node_cores
# A small model gains little from the other cores, and other jobs do.
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
    """A wildcard's pattern: one of the names."""
    return "|".join(dict.fromkeys(names)) or "none"


wildcard_constraints:
    task=either(GRAPH_TASKS),
    source="[a-z]+",
    target="[a-z]+",
    seed=r"\d+",


def job(command):
    """Inputs of every job of a stage: its code, and the configuration."""
    return {"code": closure(command), "config": ancient(CONFIGURATION)}


def needs(rule):
    """What a rule asks of a cluster."""
    return resources_of(rule, RUN.scale, RUN.gpus)


def picked(section, *keys):
    """Some keys of a section as plain values, which Snakemake compares with those of the last run."""
    given = section.given()
    return {key: given[key] for key in keys if key in given}


def text_settings(place):
    """What decides a text, as plain values: the corpus, and how it is cut."""
    values = {
        name: getattr(place, name)
        for name in place.__dataclass_fields__
        if name not in ("files", "section")
    }
    return values | {"corpus": place.corpus.given()}


def shipped(name):
    """Whether there is a checkpoint of a model."""
    return bool(
        RUN.checkpoints and Path(RUN.checkpoints, name, "weights.safetensors").exists()
    )


def short_names(names):
    """Names to ask for a notebook by: its own, such as fig04_tradeoff, and fig04 if no other begins with that."""
    found = {}
    for name in names:
        own = Path(name).name
        for short in (own, own.partition("_")[0]):
            found.setdefault(short, []).append(name)
    return {
        short: own[0]
        for short, own in found.items()
        if len(set(own)) == 1 and short[0].isalpha() and short not in MODULE_OF
    }


localrules:
    configuration,


rule configuration:
    output:
        CONFIGURATION,
    params:
        settings={
            key: value
            for key, value in RUN.given().items()
            if key not in WHERE_IT_RUNS
        },
    message:
        "Write down the configuration"
    run:
        with making("configuration"):
            write_configuration(RUN, Path(output[0]))
