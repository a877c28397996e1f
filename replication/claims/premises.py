"""When the test of a claim is fair: conditions on what was measured, such as ``gold_sparsity >= 0.75 & bleu >= 30``."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from replication.reading import noted, read_table
from replication.results import by_budget, over_heads, read_captioning, read_characters, read_forms, read_sweep

CONDITION = re.compile(r"\s*([a-z_0-9]+)\s*(>=|<=)\s*([0-9.]+)\s*")


@dataclass(frozen=True)
class Condition:
    name: str
    relation: str
    number: float

    def met(self, value: float) -> bool:
        return value >= self.number if self.relation == ">=" else value <= self.number

    def worst(self, values: dict[str, float]) -> str:
        """The corpus whose value is the farthest from meeting it."""
        return (min if self.relation == ">=" else max)(values, key=values.get)


def parse(text: str) -> list[Condition]:
    """Conditions joined by ``&``; none of an empty text.

    Raises
    ------
    ValueError
        If a part is no condition.
    """
    found = []
    for part in text.split("&") if text else []:
        matched = CONDITION.fullmatch(part)
        if not matched:
            raise ValueError(f"premise: {part.strip()!r} is not of the form 'name >= number'")
        found.append(Condition(matched[1], matched[2], float(matched[3])))
    return found


def judge(text: str, task: str, folder: Path) -> tuple[bool, str]:
    """Whether every condition is met by every corpus of a task, and the premise with the numbers measured, in words.

    What was not measured does not meet a condition.

    Raises
    ------
    ValueError
        If a name is not measured for the task at all.
    """
    met, words = True, []
    for condition in parse(text):
        if condition.name not in MEASURES[task]:
            raise ValueError(f"premise: {condition.name!r} is not measured for {task}: {', '.join(MEASURES[task])}")
        try:
            values = MEASURES[task][condition.name](folder)
        except (FileNotFoundError, KeyError):
            values = {}
        said = f"{condition.name} {condition.relation} {condition.number:g}"
        if values:
            worst = condition.worst(values)
            met &= condition.met(values[worst])
            words.append(f"{said} ({values[worst]:.3g}{f' in {worst}' if worst else ''})")
        else:
            met = False
            words.append(f"{said} (not known)")
    return met, "; ".join(words)


def configuration(folder: Path) -> dict:
    """The configuration of the run that a task's folder belongs to: ``config.yaml`` in the folder of results."""
    for above in folder.parents:
        if (above / "config.yaml").exists():
            return yaml.safe_load(noted(above / "config.yaml").read_text(encoding="utf-8"))
    raise FileNotFoundError(f"{folder}: no config.yaml above")


def _setting(*keys: str) -> Callable[[Path], dict[str, float]]:
    def value(folder: Path) -> dict[str, float]:
        found = configuration(folder)
        for key in keys:
            found = found[key]
        return {"": found}

    return value


def _per_corpus(pattern: str, measure: Callable[[Path], float]) -> Callable[[Path], dict[str, float]]:
    return lambda folder: {path.name: measure(path) for path in sorted(folder.glob(pattern))}


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


def _caption_lift(folder: Path) -> dict[str, float]:
    """How many times better softmax's captions are for their own images than for others: 1 of a model that sees nothing."""
    softmax = read_captioning(folder, "captions.parquet").query("model == 'softmax'")
    return {"": float(softmax["cider"].mean() / softmax["cider_of_other"].mean())}


#: By task: what premises can speak of, from the folder of the task to a value per corpus.
MEASURES: dict[str, dict[str, Callable[[Path], dict[str, float]]]] = {
    "masked_lm": {
        "gold_sparsity": lambda folder: {"": _gold_sparsity(folder)},
        "bigram_share": _bigram_share,
        "length": _setting("masked_lm", "length"),
        "layers": _setting("masked_lm", "layers"),
        "coreference_lift": _coreference_lift,
        "auxiliaries": _auxiliaries,
    },
    "translation": {
        "gold_sparsity": _per_corpus("*-*", _gold_sparsity),
        "bleu": _per_corpus("*-*", lambda folder: float(read_table(folder / "bleu.csv")["bleu"].item())),
        "decoder_layers": _setting("translation", "architecture", "decoder_layers"),
    },
    "char_lm": {
        "characters": partial(_characters, None, "characters"),
        "longest_span": partial(_characters, "adaptive-span", "memory_length"),
        "span": partial(_characters, "adaptive-span", "attended_positions"),
        "recurrent_positions": partial(_characters, "transformer-xl", "attended_positions"),
    },
    "forms/sentences": {
        "bleu": _per_corpus("*-*", _best_bleu),
        "decoder_layers": _setting("forms", "sentences", "architecture", "decoder_layers"),
    },
    "forms/documents": {"bleu": _per_corpus("*-*", _best_bleu)},
    "normalizer_speed": {"bleu": partial(_speed, "bleu"), "decoded_tokens": partial(_speed, "decoded_tokens")},
    "factorised": {},
    "patterns/images": {},
    "patterns/text": {},
    "captioning": {"lift": _caption_lift},
    "retrofit": {},
}
