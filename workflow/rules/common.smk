"""Paths and lists that several stages share."""

import json
from itertools import product
from pathlib import Path
from shlex import quote

from workflow.closure import closure, notebook_closure
from workflow.resources import resources_of

PROFILE = config["profile"]
RESULTS = f"results/{PROFILE}"
MASKED_LM = f"{RESULTS}/masked_lm"
TRANSLATION = f"{RESULTS}/translation"
# Runs whose tables are kept, each with its ledger.
REPORTED = sorted(path.parent.name for path in Path("reported").glob("*/claims.csv"))
SEEDS = config["student_seeds"]
# Where the run is, not what it is: how much its jobs ask for.
CLUSTER = {
    key: config.get(key, default)
    for key, default in {"scale": "laptop", "gpus": 1, "node_cores": 4}.items()
}
# On a cluster, a run has no cores of its own, and a job those of a node.
CORES = workflow.resource_settings.cores or CLUSTER["node_cores"]
SPLITS = ["train", "valid"]
PAIRS = list(config["translation"]["corpus"]) if "translation" in config else []

# The folder of every task below RESULTS, and its section of the configuration. Stages that learn from attention graphs
# are the same for all of them.
TASKS = {f"translation/{pair}": config["translation"] for pair in PAIRS}
if "masked_lm" in config:
    TASKS["masked_lm"] = config["masked_lm"]

# Models of symbols, one after another: the folder of each below RESULTS, and its section.
SYMBOL_LMS = {"char_lm": config["char_lm"]} if "char_lm" in config else {}
SYMBOL_LMS |= {
    f"patterns/{name}": section for name, section in config.get("patterns", {}).items()
}

# What the training of a translator leaves.
TRANSLATOR_FILES = ["model.safetensors", "training.csv", "training.json"]
# Every model that is trained, by its folder below RESULTS: the stage that trains it, its settings and seed, the text that it
# reads, a file which is there when the text is, and what is measured with it. Rules take it from here if CHECKPOINTS has it.
MODELS = {}
CHECKPOINTS = config.get("checkpoints")
# What training leaves in the folder of a model, section by section.
LEFT = {
    "masked_lm": [*TRANSLATOR_FILES, "config.json"],
    "translation": TRANSLATOR_FILES,
    "char_lm": ["model.safetensors", "log.csv", "training.json"],
    "patterns": ["model.safetensors", "log.csv", "training.json"],
    "captioning": [*TRANSLATOR_FILES, "config.json", "vocabulary.json"],
    "forms": TRANSLATOR_FILES,
    "normalizer_speed": TRANSLATOR_FILES,
}

# Forms whose pronouns are measured in documents: full attention, and the one that Extremely Sparse Transformer proposes.
FORMS_WITH_PRONOUNS = ["Full", "Top-k OOW"]

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


def needs(rule):
    """What a rule asks of a cluster."""
    return resources_of(rule, CLUSTER["scale"], CLUSTER["gpus"])


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
    corpus = section["corpus"][pair]
    return "block_words" not in section and (
        corpus["source"] == "grammar" or "keys" in corpus
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


def form_jobs(forms, chosen=lambda folder: True):
    """Unit, its section, language pair, number and chosen cells of every job that trains or measures attention forms."""
    jobs = []
    for unit, section in forms.items():
        for pair in section["corpus"]:
            cells = [
                cell
                for cell in form_cells(section["runs"])
                if chosen(f"forms/{unit}/{pair}/{cell['name']}")
            ]
            per_job = section["models_per_job"]
            jobs += [
                (unit, section, pair, start // per_job, cells[start : start + per_job])
                for start in range(0, len(cells), per_job)
            ]
    return jobs


def pronoun_jobs(documents):
    """Language pair and cells of every job that measures pronouns: of English, where the corpus knows what is a document."""
    jobs = []
    for pair, corpus in documents["corpus"].items():
        cells = [
            cell
            for cell in form_cells(documents["runs"])
            if cell["form"] in FORMS_WITH_PRONOUNS
        ]
        if cells and corpus["source"] == "grammar" and pair.endswith("-en"):
            jobs.append((pair, cells))
    return jobs


def as_options(cells):
    return " ".join(f"--cell '{json.dumps(cell)}'" for cell in cells)


def shipped(folder):
    """Whether there is a checkpoint of a model, named by its folder below RESULTS."""
    return (
        bool(CHECKPOINTS) and Path(CHECKPOINTS, folder, "weights.safetensors").exists()
    )


def without_checkpoint(folder):
    return not shipped(folder)


def texts(folder):
    return " ".join(f"--text {path}" for path in MODELS[folder]["text"])


def command_that_ships(folder):
    """With which a model of these results becomes a checkpoint."""
    model = MODELS[folder]
    left = set(LEFT[Path(folder).parts[0]]) - {"model.safetensors", "training.json"}
    beside = " ".join(f"--beside {file}" for file in sorted(left))
    measured = " ".join(f"--measured {path}" for path in model["measured"])
    return (
        f"replicate ship --model {RESULTS}/{folder} --name {folder} --run {quote(json.dumps(model['run']))} {texts(folder)}"
        f' --code "$(python -m workflow.closure {model["stage"]})" {beside} {measured} --checkpoints {CHECKPOINTS or "checkpoints"}'
    )


def pieces(data, languages):
    """The subwords that a translator is trained and validated on, of a folder of binarize."""
    return [f"{data}/pieces/{split}.{one}" for split in SPLITS for one in languages]


def windows(widths):
    return " ".join(f"--window {width}" for width in widths)


def as_seeds(seeds):
    return " ".join(f"--seed {seed}" for seed in seeds)


def per_layer(pattern):
    """Files of a task, one for every layer; the pattern keeps its other wildcards."""
    return lambda wildcards: expand(
        pattern, layer=layers(wildcards.task), **dict(wildcards.items())
    )


def notebook(name):
    """The notebook that draws a figure or shows a table."""
    return f"notebooks/{DRAWN_BY.get(name, name)}.ipynb"


def short_names(notebooks):
    """Names to ask for a notebook by: its own, such as fig04_tradeoff, and fig04 if no other begins with that."""
    names = {}
    for notebook in notebooks:
        own = Path(notebook).name
        for name in (own, own.partition("_")[0]):
            names.setdefault(name, []).append(notebook)
    return {
        name: found[0]
        for name, found in names.items()
        if len(set(found)) == 1 and name[0].isalpha() and not workflow.is_rule(name)
    }


def measured(task, kind):
    """Files that notebooks and the ledger read: every seed, and every layer where there are layers."""
    return expand(
        f"{RESULTS}/{task}/{kind}", seed=SEEDS, layer=layers(task), split=SPLITS
    )


def of_models(lm, *names):
    """Files of every model of one of the SYMBOL_LMS."""
    section = SYMBOL_LMS[lm]
    return expand(
        f"{RESULTS}/{lm}/{{corpus}}/models/{{model}}/seed{{seed}}/{{name}}",
        corpus=section["corpora"],
        model=section["models"],
        seed=section["seeds"],
        name=names,
    )
