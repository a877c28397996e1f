"""Regimes of models, which follow from a run's configuration, and the table that describes all runs."""

import math
from pathlib import Path

import pandas as pd
import yaml

from replication.claims import TASKS
from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.results.measurements import read_forms, read_sweep
from replication.results.points import by_budget, over_heads
from replication.tables.markers import markdown

FINE_TUNED, INDEPENDENT, TIED = "fine-tuned encoder", "from scratch, independent weights", "from scratch, tied weights"
#: Regimes of tasks other than masked language modelling.
OF_TASKS = {
    "translation": "translation",
    "forms/sentences": "translation",
    "normalizer_speed": "translation",
    "forms/documents": "documents",
    "char_lm": "characters",
    "patterns/text": "characters",
    "patterns/images": "images",
    "captioning": "captioning",
    "retrofit": "sparsified encoder",
    "factorised": "no model",
}
#: All regimes, in the order of tables.
REGIMES = (FINE_TUNED, INDEPENDENT, TIED, *dict.fromkeys(OF_TASKS.values()))
HEADER = [
    "run", "regime", "model", "text", "tokens", "initialisation", "layers x heads", "gold share", "models", "student seeds",
    "student steps", "perplexity, BLEU or bits",
]  # fmt: skip


def configuration(run: str) -> dict:
    """Return a stored run's configuration; that of the default run is its profile. Empty for the papers' own tables."""
    paths = (ROOT / "reported" / run / "config.yaml", ROOT / "config" / f"{run}.yaml")
    found = next((path for path in paths if path.exists()), None)
    return yaml.safe_load(found.read_text(encoding="utf-8")) if found else {}


def regime(claim: str, settings: dict) -> str:
    """Return the regime in which a run with these settings tests a claim."""
    task = next(task for task, tests in TASKS.items() if claim in tests)
    return OF_TASKS.get(task) or _of_masked_lm(settings.get("masked_lm", {}).get("model", {}))


def _of_masked_lm(model: dict) -> str:
    return FINE_TUNED if "pretrained" in model else TIED if model.get("tied_query_key") else INDEPENDENT


def regimes() -> str:
    """Return a row for each run and task: its regime, model, text and training."""
    names = sorted(path.parent.name for path in (ROOT / "reported").glob("*/claims.csv"))
    rows = []
    for run in names:
        settings, folder = configuration(run), ROOT / "reported" / run
        for task, describe in DESCRIBED.items():
            section = settings
            for key in task.split("/"):
                section = section.get(key, {}) if section else {}
            if section:
                cells = describe(section, settings, folder / task)
                shown = OF_TASKS.get(task) or _of_masked_lm(section["model"])
                rows.append([f"[{run}]({run})", shown, *(str(cells.get(name, "")) for name in HEADER[2:])])
    return markdown(HEADER, rows)


def _students(section: dict, settings: dict) -> dict[str, object]:
    """Return the number of student seeds, and the optimiser steps of each layer's projections."""
    projection, seeds = section["projection"], len(settings["student_seeds"])
    steps = projection["epochs"] * math.ceil(section["graphs"]["train"] / projection["batch_size"])
    return {"student seeds": seeds, "student steps": steps}


def _text(section: dict) -> str:
    """Return the sources of a section's corpora, or their folders' names."""
    corpora = section.get("corpus") or section.get("corpora")
    found = [corpora] if "source" in corpora else list(corpora.values())
    return ", ".join(dict.fromkeys(Path(one.get("path", one["source"])).name for one in found))


def _gold(folder: Path) -> str:
    try:
        return f"{100 * (1 - over_heads(read_sweep(folder))['gold_sparsity'].mean()):.3g} %"
    except FileNotFoundError:
        return ""


def _masked_lm(section: dict, settings: dict, folder: Path) -> dict[str, object]:
    model, trained = section["model"], folder / "model" / "training.json"
    if not trained.exists():
        trained = folder.parent / "training.json"
    sizes = model
    if "num_attention_heads" not in model and trained.exists():
        sizes = yaml.safe_load(trained.read_text(encoding="utf-8")).get("architecture", {})
    adapters = f", adapters of rank {model['adapter_rank']}" if "adapter_rank" in model else ""
    start = "equal" if model.get("tied_query_key") else "independent"
    table = next(
        (path for path in (folder / "perplexity.csv", folder.parent / "perplexity.csv") if path.exists()), None
    )
    perplexity = ""
    if table:
        held_out = read_table(table).query("corpus == 'held-out'").set_index("model")["perplexity"]
        perplexity = f"{held_out[held_out.index.str.startswith('entmax ')].item():.1f}"
    return {
        "model": Path(model["pretrained"]).parent.name.partition(":")[2] if "pretrained" in model else "encoder",
        "text": _text(section),
        "tokens": section["length"],
        "initialisation": f"pretrained{adapters}" if "pretrained" in model else f"{start} query and key weights",
        "layers x heads": f"{section['layers']} x {sizes.get('num_attention_heads', '?')}",
        "gold share": _gold(folder),
        "models": 1,
        "perplexity, BLEU or bits": perplexity,
    } | _students(section, settings)


def _translator(section: dict) -> dict[str, object]:
    sizes = section["architecture"]
    return {
        "model": f"translator, {sizes['encoder_embed_dim']} wide",
        "text": _text(section),
        "initialisation": "random",
        "layers x heads": f"{sizes['decoder_layers']} x {sizes['decoder_attention_heads']}",
    }


def _translation(section: dict, settings: dict, folder: Path) -> dict[str, object]:
    pairs = sorted(section["corpus"])
    bleu = [(pair, folder / pair / "bleu.csv") for pair in pairs]
    scores = [f"{read_table(path).iloc[-1]['bleu']:.1f} {pair}" for pair, path in bleu if path.exists()]
    gold = [share for pair in pairs if (share := _gold(folder / pair))]
    shown = {"gold share": ", ".join(gold), "models": 1, "perplexity, BLEU or bits": ", ".join(scores)}
    return _translator(section) | shown | _students(section, settings)


def _forms(section: dict, settings: dict, folder: Path) -> dict[str, object]:
    tables = [read_forms(path) for path in sorted(folder.glob("*-*"))]
    shown = {}
    if tables:
        cells = by_budget(pd.concat(tables))
        shown = {"models": f"{len(cells)} forms, up to {pd.concat(tables)['seed'].nunique()} seeds"}
        shown["perplexity, BLEU or bits"] = f"up to {cells.max(axis=None):.1f}"
    return _translator(section) | shown


def _characters(section: dict, settings: dict, folder: Path) -> dict[str, object]:
    sizes = section["sizes"]
    measured = [read_table(path) for path in sorted(folder.glob("*/models/*/seed*/measured.csv"))]
    bits = f"from {pd.concat(measured)['bits_per_character'].min():.2f}" if measured else ""
    return {
        "model": f"decoder, {sizes['dimension']} wide",
        "text": _text(section),
        "tokens": section["recipe"]["length"],
        "initialisation": "random",
        "layers x heads": f"{sizes['layers']} x {sizes['heads']}",
        "models": f"{len(section['models'])} kinds, {len(section['seeds'])} seeds",
        "perplexity, BLEU or bits": bits,
    }


#: How each task's section of a configuration is described; other tasks train no model of their own text.
DESCRIBED = {
    "masked_lm": _masked_lm,
    "translation": _translation,
    "forms/sentences": _forms,
    "forms/documents": _forms,
    "char_lm": _characters,
}
