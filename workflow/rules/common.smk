"""Definitions shared by all rules: the run's configuration, its models, and what several rules share."""

import shlex
from pathlib import Path

from replication.corpora.inputs import content_of, files_in
from replication.run.layout import MaskedLM, results_folder
from replication.stages import MODULE_OF
from replication.steps import steps
from replication.run.trained import trained_models
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
DECISIVE = RUN.decisive()
# Stored runs, each with its ledger.
REPORTED = sorted(path.parent.name for path in Path("reported").glob("*/claims.csv"))
# On a cluster, the run itself has no cores, and a job may use all cores of its node.
CORES = workflow.resource_settings.cores or RUN.node_cores
# Small models gain little from more cores than this; other jobs use the rest.
HALF = max(1, CORES // 2)

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


def needs(rule):
    """Return the resources that a rule requests on a cluster."""
    return resources_of(rule, RUN.scale, RUN.gpus)


def own_files():
    """Return the files of the user and of this checkout that jobs read."""
    for step in STEPS:
        yield from (*step.text(), *step.pretrained())
    for folder in ("kernels", "notebooks", "replication", "sparselib", RUN.checkpoints):
        yield from files_in(folder)


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


IMPORTED = imported_models()
STEPS = list(steps(RUN, {name for names in IMPORTED.values() for name in names}))
# Copies of the user's own predictors.
OWN = [
    path for step in STEPS if step.command == "store_predictor" for path in step.makes
]
