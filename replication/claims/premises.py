"""Premises: conditions under which a run can test a claim, such as ``length >= 512 & bigram_share <= 0.5``.

``config/published/premises.csv`` quotes the source of each premise and gives the date on which it was added.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from replication.claims.configuration import configuration
from replication.files.reading import read_table
from replication.files.verification import listed_files
from replication.results.measurements import read_captioning, read_characters, read_forms, read_sweep
from replication.results.points import by_budget, over_heads
from replication.timing.repeats import repeats

CONDITION = re.compile(r"\s*([a-z_0-9]+)\s*(>=|<=)\s*([0-9.]+)\s*")


@dataclass(frozen=True)
class Condition:
    """Bound on one measured number."""

    name: str
    relation: str
    number: float

    def met(self, value: float) -> bool:
        """Return whether a value meets the condition."""
        return value >= self.number if self.relation == ">=" else value <= self.number

    def outside(self, value: float) -> str:
        """Return how far a value is from meeting the condition, in words; empty if it meets it."""
        return "" if self.met(value) else f", {abs(value - self.number):.3g} outside"

    def worst(self, values: dict[str, float]) -> str:
        """Return the corpus whose value is farthest from meeting the condition."""
        return (min if self.relation == ">=" else max)(values, key=values.get)


def parse(text: str) -> list[Condition]:
    """Parse conditions joined by ``&``; an empty text gives none.

    Raises
    ------
    ValueError
        If a part is not a condition.
    """
    conditions = []
    for part in text.split("&") if text else []:
        matched = CONDITION.fullmatch(part)
        if not matched:
            raise ValueError(f"`premise` must be like 'name >= number & name <= number', got {part.strip()!r}")
        conditions.append(Condition(matched[1], matched[2], float(matched[3])))
    return conditions


def judge(text: str, task: str, folder: Path) -> tuple[bool, str]:
    """Return whether all corpora of a task meet all conditions, and the premise with the measured numbers, in words.

    Numbers that were not measured do not meet a condition.

    Raises
    ------
    ValueError
        If :data:`MEASURES` has no such number for the task.
    """
    met, words = True, []
    for condition in parse(text):
        if condition.name not in MEASURES[task]:
            measured = ", ".join(MEASURES[task])
            raise ValueError(f"`premise` must name a number measured for {task} ({measured}), got {condition.name!r}")
        try:
            values = MEASURES[task][condition.name](folder)
        except (FileNotFoundError, KeyError):
            values = {}
        criterion = f"{condition.name} {condition.relation} {condition.number:g}"
        if values:
            worst = condition.worst(values)
            met &= condition.met(values[worst])
            words.append(
                f"{criterion} ({values[worst]:.3g}{f' in {worst}' if worst else ''}{condition.outside(values[worst])})"
            )
        else:
            met = False
            words.append(f"{criterion} (not known)")
    return met, "; ".join(words)


def _setting(*keys: str) -> Callable[[Path], dict[str, float]]:
    def value(folder: Path) -> dict[str, float]:
        setting = configuration(folder)
        for key in keys:
            setting = setting[key]
        return {"": setting}

    return value


#: Alpha of the normalisers that have a fixed one.
ALPHAS = {"softmax": 1.0, "entmax15": 1.5, "sparsemax": 2.0}


def _alpha(folder: Path) -> dict[str, float]:
    """Return the alpha of a translator's normaliser."""
    training = configuration(folder)["translation"]["training"]
    default = "softmax" if "attention_form" in training else "entmax15"
    return {"": ALPHAS[training.get("attention_normalizer", default)]}


def _per_corpus(pattern: str, measure: Callable[[Path], float]) -> Callable[[Path], dict[str, float]]:
    return lambda folder: {path.name: measure(path) for path in listed_files(folder, pattern)}


def _gold_sparsity(folder: Path) -> float:
    return float(over_heads(read_sweep(folder))["gold_sparsity"].mean())


def _bigram_share(folder: Path) -> dict[str, float]:
    table = read_table(folder / "perplexity.csv")
    held_out = table[table["corpus"] == "held-out"].set_index("model")["perplexity"]
    (model,) = (name for name in held_out.index if name.startswith("entmax "))
    return {"": held_out[model] / held_out["interpolated bigram"]}


def _coreference_lift(folder: Path) -> dict[str, float]:
    heads = read_table(folder / "coreference.csv")
    return {"": float((heads["mass"] / heads["chance"]).max())}


def _auxiliaries(folder: Path) -> dict[str, float]:
    tags = read_table(folder / "tags.csv")
    first = tags[(tags["tag"] == "AUX") & (tags["layer"] == 0) & (tags["head"] == 0) & (tags["side"] == "query")]
    return {"": float(first["count"].sum())}


def _characters(model: str | None, column: str, folder: Path) -> dict[str, float]:
    table = read_characters(folder, "measured.csv")
    if model is not None:
        table = table[table["model"] == model]
    return table.groupby("corpus")[column].max().to_dict()


def _best_bleu(folder: Path) -> float:
    return float(by_budget(read_forms(folder)).max(axis=None))


def _speed(column: str, folder: Path) -> dict[str, float]:
    table = read_table(folder / "speed.csv").set_index("contender")
    return {"": float(table.loc["softmax", column])}


def _softmax_lead(column: str, rival: str, folder: Path) -> dict[str, float]:
    """Return softmax's speed relative to the rival's faster implementation, which bounds what top-k can reach."""
    speeds = read_table(folder / "speed.csv").set_index(["contender", "implementation"])[column].map(repeats)
    (softmax,) = speeds.loc["softmax"]
    return {"": float(min(np.mean(softmax / other) for other in speeds.loc[rival]))}


def _sessions(path: str, folder: Path) -> dict[str, float]:
    """Return the number of sessions that a folder's timings are spread over: one, unless the tables say so."""
    tables = [read_table(table) for table in listed_files(folder, path)]
    return {"": min(table["sessions"].min() if "sessions" in table else 1 for table in tables)} if tables else {}


def _initial_span(folder: Path) -> dict[str, float]:
    """Return the initial adaptive span as a share of the longest span."""
    return {"": float(configuration(folder)["char_lm"]["models"]["adaptive-span"].get("initial_span", 0.0))}


def _caption_lift(folder: Path) -> dict[str, float]:
    """Return the CIDEr of softmax's captions for their own images, divided by that for others; 1 without visual input."""
    softmax = read_captioning(folder, "captions.parquet").query("model == 'softmax'")
    return {"": float(softmax["cider"].mean() / softmax["cider_of_other"].mean())}


#: By task: functions that compute the numbers in premises, from the task's folder to a value per corpus.
MEASURES: dict[str, dict[str, Callable[[Path], dict[str, float]]]] = {
    "masked_lm": {
        "gold_sparsity": lambda folder: {"": _gold_sparsity(folder)},
        "bigram_share": _bigram_share,
        "length": _setting("masked_lm", "length"),
        "layers": _setting("masked_lm", "layers"),
        "coreference_lift": _coreference_lift,
        "auxiliaries": _auxiliaries,
        "sessions": partial(_sessions, "blocks/size*/timed.csv"),
    },
    "translation": {
        "gold_sparsity": _per_corpus("*-*", _gold_sparsity),
        "bleu": _per_corpus("*-*", lambda folder: float(read_table(folder / "bleu.csv")["bleu"].item())),
        "alpha": _alpha,
        "decoder_layers": _setting("translation", "architecture", "decoder_layers"),
    },
    "char_lm": {
        "characters": partial(_characters, None, "characters"),
        "span": partial(_characters, "adaptive-span", "attended_positions"),
        "initial_span": _initial_span,
        "recurrent_positions": partial(_characters, "transformer-xl", "attended_positions"),
    },
    "forms/sentences": {
        "bleu": _per_corpus("*-*", _best_bleu),
        "decoder_layers": _setting("forms", "sentences", "architecture", "decoder_layers"),
    },
    "forms/documents": {"bleu": _per_corpus("*-*", _best_bleu)},
    "normalizer_speed": {
        "bleu": partial(_speed, "bleu"),
        "sessions": partial(_sessions, "speed.csv"),
        "decoded_tokens": partial(_speed, "decoded_tokens"),
        "softmax_by_sparsemax": partial(_softmax_lead, "decode_repeats", "sparsemax"),
        "softmax_by_entmax_alpha": partial(_softmax_lead, "decode_repeats", "entmax_alpha"),
        "softmax_by_sparsemax_training": partial(_softmax_lead, "train_repeats", "sparsemax"),
    },
    "factorised": {},
    "patterns/images": {},
    "patterns/text": {},
    "captioning": {"lift": _caption_lift},
    "retrofit": {},
}
