"""The profiles in `config/`, changed copies of them, and their problems."""

import copy
from collections.abc import Iterator

import yaml

from replication.config import ConfigurationError, parse
from replication.files.paths import ROOT

PROFILES = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / "config").glob("*.yaml"))}
#: Greek and old English aligned with modern English.
PAIRS = {
    pair: {"source": "bible", "train": ["Titus"], "valid": ["Jude"], "test": ["Philemon"]}
    for pair in ("grc-en", "kjv-en")
}
#: The default profile with a masked language model that starts from random weights, and translators of two pairs.
FROM_SCRATCH = PROFILES["demo"] | {
    "translation": PROFILES["demo"]["translation"] | {"corpus": PAIRS},
    "masked_lm": PROFILES["demo"]["masked_lm"]
    | {
        "corpus": {"source": "bible", "train": ["Ruth", "Jonah"], "valid": ["Esther"]},
        "tokenizer": {"vocab_size": 2000},
        "layers": 3,
        "model": {
            "hidden_size": 128,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 512,
            "tied_query_key": True,
            "hidden_dropout_prob": 0.0,
        },
        "training": {
            "mask_probability": 0.2,
            "max_steps": 6000,
            "per_device_train_batch_size": 8,
            "learning_rate": 0.001,
            "lr_scheduler_type": "linear",
            "logging_steps": 50,
            "save_steps": 250,
        },
    },
}
#: Profiles with every task.
WHOLE = ("demo", "local", "paper", "smoke")
TASKS = (
    "masked_lm",
    "translation",
    "char_lm",
    "patterns",
    "captioning",
    "forms",
    "scaling",
    "normalizer_speed",
    "retrofit",
)


def problems(profile: object, files: bool = True) -> list[str]:
    """Return the lines of a profile's error; none for a profile that can work."""
    try:
        parse(profile, files=files)
    except ConfigurationError as error:
        return str(error).splitlines()
    return []


def changed(path: str | list, value: object, profile: str | None = None) -> dict:
    """Return a copy of a profile (default: `FROM_SCRATCH`) with another value at a path, such as `masked_lm/length`."""
    *above, key = path.split("/") if isinstance(path, str) else path
    settings = copy.deepcopy(PROFILES[profile] if profile else FROM_SCRATCH)
    at(settings, above)[key] = value
    return settings


def at(value, path: list):
    for key in path:
        value = value[key]
    return value


def dotted(path: list) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def paths(value: object, path: tuple = ()) -> Iterator[list]:
    """Yield the paths of a profile and of everything in it; of a list only the first item, since all items share a rule."""
    yield list(path)
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


def places(profile: dict) -> Iterator[tuple[dict, list]]:
    """Yield every path of a profile, each with the smallest part of the profile that can be parsed."""
    for task in (*(name for name in TASKS if name in profile), None):
        # The model of this run is sparsified.
        needed = ("retrofit", "masked_lm") if task == "retrofit" else (task or "scaling",)
        kept = {key: value for key, value in copy.deepcopy(profile).items() if key not in TASKS or key in needed}
        for path in list(paths(kept)):
            if (path[0] if path and path[0] in TASKS else None) == task:
                yield kept, path
