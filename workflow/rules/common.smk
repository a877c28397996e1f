"""Paths and lists that several stages share."""

import json
from itertools import product
from pathlib import Path

from workflow.closure import closure, notebook_closure

PROFILE = config["profile"]
RESULTS = f"results/{PROFILE}"
MASKED_LM = f"{RESULTS}/masked_lm"
TRANSLATION = f"{RESULTS}/translation"
# Runs whose tables are kept, each with its ledger.
REPORTED = sorted(path.parent.name for path in Path("reported").glob("*/claims.csv"))
SEEDS = config["student_seeds"]
SPLITS = ["train", "valid"]
PAIRS = list(config["translation"]["corpus"]) if "translation" in config else []

# The folder of every task below RESULTS, and its section of the configuration. Stages that learn from attention graphs
# are the same for all of them.
TASKS = {f"translation/{pair}": config["translation"] for pair in PAIRS}
if "masked_lm" in config:
    TASKS["masked_lm"] = config["masked_lm"]

# Each stage says here which notebooks read what it has made: those that draw the figure of their name, and the others. The
# ledger of claims is tested on what was measured.
FIGURES, TABLES, MEASURED = {}, {}, []
# Where one notebook draws several figures: the notebook of each, named after the first of them, and what it is told.
DRAWN_BY, TOLD = {}, {}


wildcard_constraints:
    task="|".join(TASKS) or "none",
    pair="|".join(PAIRS) or "none",
    split="train|valid|test",
    seed=r"\d+",


def layers(task):
    """Two-digit numbers of the layers whose graphs are stored."""
    section = TASKS[task]
    count = (
        section["layers"]
        if task == "masked_lm"
        else section["architecture"]["decoder_layers"]
    )
    return [f"{layer:02}" for layer in range(count)]


def setting(*keys):
    """A value of the task's section, as JSON if it is not a scalar."""

    def look_up(wildcards):
        value = TASKS[wildcards.task]
        for key in keys:
            value = value[key]
        return json.dumps(value) if isinstance(value, dict | list) else value

    return look_up


def corpus_of(section, wildcards):
    """Where the sentences of a language pair come from, as JSON."""
    return json.dumps(section["corpus"][f"{wildcards.source}-{wildcards.target}"])


def word_alignment_is_known(section, pair):
    """Whether a corpus says which words of its sentences are translations of each other."""
    return (
        section["corpus"][pair]["source"] == "grammar" and "block_words" not in section
    )


def form_cells(runs):
    """What is trained: the attention form, its budget, the seed, and the name of its folder."""
    cells = {}
    for run in runs:
        for form, budget, seed in product(run["forms"], run["budgets"], run["seeds"]):
            # Full has no budget: all of its budgets are one cell.
            own = {"form": form, "budget": None if form == "Full" else budget}
            at = "" if own["budget"] is None else f"_k{budget}"
            name = f"{form.lower().replace(' ', '-')}{at}_seed{seed}"
            cells[name] = {"name": name, **own, "seed": seed}
    return list(cells.values())


def form_jobs(forms):
    """Unit, its section, language pair, number and cells of every job that trains translators with attention forms."""
    return [
        (unit, section, pair, number, cells[start : start + section["models_per_job"]])
        for unit, section in forms.items()
        for cells in [form_cells(section["runs"])]
        for pair in section["corpus"]
        for number, start in enumerate(range(0, len(cells), section["models_per_job"]))
    ]


def windows(widths):
    return " ".join(f"--window {width}" for width in widths)


def per_layer(pattern):
    """Files of a task, one for every layer; the pattern keeps its other wildcards."""
    return lambda wildcards: expand(
        pattern, layer=layers(wildcards.task), **dict(wildcards.items())
    )


def notebook(name):
    """The notebook that draws a figure or shows a table."""
    return f"notebooks/{DRAWN_BY.get(name, name)}.ipynb"


def measured(task, kind):
    """Files that notebooks and the ledger read: every seed, and every layer where there are layers."""
    return expand(
        f"{RESULTS}/{task}/{kind}", seed=SEEDS, layer=layers(task), split=SPLITS
    )
