"""What a schema cannot say of a configuration: numbers that do not fit each other, and folders that are not there.

``problems(config)`` reads all of it before any job starts, in a moment, and names the path of each key that cannot work.
"""

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

#: A key's path, and what is wrong with its value.
Problem = tuple[str, str]

#: Endings of text for the masked language model, and of aligned text.
_TEXT, _ALIGNED = (".txt", ".txt.gz", ".conllu", ".conllu.gz"), ("", ".gz")
#: What the split "valid" is called too, in aligned text.
_ALIASES = {"valid": ("valid", "val", "dev")}


def problems(config: dict) -> list[str]:
    """``key.path: what is wrong``, for every value that cannot work; none of a configuration that runs to its end."""
    found = [*_not_finite(config, ""), *_results(config["profile"])]
    for section, checks in _SECTIONS.items():
        if section in config:
            found += checks(config[section], section)
    return [f"{path}: {what}" for path, what in found]


def _not_finite(value: object, path: str) -> Iterator[Problem]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _not_finite(inner, f"{path}.{key}" if path else str(key))
    if isinstance(value, float) and not math.isfinite(value):
        yield path, f"{value} is no finite number"


def _results(profile: str) -> Iterator[Problem]:
    """The folder for results, or the one that it would be made in."""
    folder = Path("results", profile)
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not there.is_dir():
        yield "profile", f"{there} is no folder, and results belong into {folder}"
    elif not os.access(there, os.W_OK | os.X_OK):
        yield "profile", f"{there} cannot be written to, and results belong into {folder}"


def _masked_lm(settings: dict, path: str) -> Iterator[Problem]:
    model, training, evaluation = settings["model"], settings["training"], settings["evaluation"]
    layers = model.get("num_hidden_layers", settings["layers"])
    if layers != settings["layers"]:
        yield f"{path}.layers", f"{settings['layers']}, and {path}.model.num_hidden_layers is {layers}"
    if "hidden_size" in model:
        yield from _divides(model, f"{path}.model", "num_attention_heads", "hidden_size")
    if training["logging_steps"] > training["max_steps"]:
        yield f"{path}.training.logging_steps", f"{training['logging_steps']}, of {training['max_steps']} steps"
    places = settings["length"] - 2
    of_step = training["per_device_train_batch_size"] * training.get("gradient_accumulation_steps", 1)
    for one, sequences, of in ((training, of_step, "training"), (evaluation, evaluation["sequences"], "evaluation")):
        if one["mask_probability"] * places * sequences < 1:
            yield f"{path}.{of}.mask_probability", f"{one['mask_probability']} masks no token of {sequences} sequences"
    yield from _corpus(settings["corpus"], f"{path}.corpus", ("train", "valid"))
    for name, corpus in settings["unseen"].items():
        yield from _named(name, f"{path}.unseen")
        yield from _corpus(corpus, f"{path}.unseen.{name}", ("valid",))
    yield from _grids(settings, path)
    if settings["tag_clusters"] not in _clusters(settings["methods"], "Clustering"):
        yield f"{path}.tag_clusters", f"no Clustering of {path}.methods has {settings['tag_clusters']} clusters"
    for number in settings.get("blocks", {}).get("clusters", ()):
        if number > settings["cluster_points"]:
            yield f"{path}.blocks.clusters", f"{number} of them, and {settings['cluster_points']} points to fit them to"


def _grids(settings: dict, path: str) -> Iterator[Problem]:
    """Methods by themselves, and those of replaced graphs, which take what the others have fitted."""
    yield from _methods(settings["methods"], f"{path}.methods", settings["cluster_points"])
    replaced, at = settings["replaced"]["methods"], f"{path}.replaced.methods"
    yield from _methods(replaced, at, settings["cluster_points"])
    for predictor in ("Clustering", "Routing"):
        fitted = _clusters(settings["methods"], predictor)
        for name, method in replaced.items():
            for number in _values(method.get("clusters", [])) if method["predictor"] == predictor else ():
                if number not in fitted:
                    known = ", ".join(map(str, sorted(fitted))) or "none"
                    yield f"{at}.{name}.clusters", f"{number} are fitted by no {predictor} of {path}.methods: {known}"


def _methods(methods: dict[str, dict], path: str, points: int) -> Iterator[Problem]:
    for name, method in methods.items():
        at, clusters = f"{path}.{name}", _values(method.get("clusters", []))
        yield from _named(name, path)
        for number in clusters:
            if number > points:
                yield f"{at}.clusters", f"{number} of them, and {points} points to fit them to"
        for number in _values(method.get("top_k", [])):
            if clusters and number > min(clusters):
                yield f"{at}.top_k", f"{number} of {min(clusters)} clusters"
        for number in _values(method.get("buckets", [])):
            if number % 2:
                yield f"{at}.buckets", f"{number} is odd: hashing needs pairs of buckets"


def _translation(settings: dict, path: str) -> Iterator[Problem]:
    yield from _translator(settings, path, ("train", "valid", "test"))
    if "pretraining" in settings:
        yield from _pairs(settings["pretraining"]["corpus"], f"{path}.pretraining.corpus", ("train", "valid"))
        if missing := settings["corpus"].keys() - settings["pretraining"]["corpus"].keys():
            yield f"{path}.pretraining.corpus", f"lacks {', '.join(sorted(missing))}"
    yield from _grids(settings, path)


def _forms(settings: dict, path: str) -> Iterator[Problem]:
    for unit, section in settings.items():
        yield from _translator(section, f"{path}.{unit}", ("train", "valid", "test"))


def _normalizer_speed(settings: dict, path: str) -> Iterator[Problem]:
    yield from _translator(settings, path, ("train", "valid", "test"))


def _translator(settings: dict, path: str, splits: Iterable[str]) -> Iterator[Problem]:
    for side in ("encoder", "decoder"):
        yield from _divides(
            settings["architecture"], f"{path}.architecture", f"{side}_attention_heads", f"{side}_embed_dim"
        )
    yield from _pairs(settings["corpus"], f"{path}.corpus", splits)


def _pairs(corpora: dict[str, dict], path: str, splits: Iterable[str]) -> Iterator[Problem]:
    for pair, corpus in corpora.items():
        source, target = pair.split("-")
        if source == target:
            yield f"{path}.{pair}", "is translated into itself"
        elif corpus["source"] == "grammar":
            if missing := [split for split in splits if split not in corpus["sentences"]]:
                yield f"{path}.{pair}.sentences", f"lacks {', '.join(missing)}"
            if unknown := {source, target} - {"en", "de", "fr"}:
                yield (
                    f"{path}.{pair}",
                    f"the grammar writes English, German and French, not {', '.join(sorted(unknown))}",
                )
        elif corpus["source"] == "folder":
            names = {split: corpus.get("names", {}).get(split) for split in splits}
            endings = [source, target, *([corpus["documents"]] if "documents" in corpus else [])]
            needed = [(split, ending) for split in splits for ending in endings]
            if "keys" in corpus:
                needed += [("test", f"{corpus['keys']}.{one}") for one in (source, target)]
            starts = [
                [f"{name}.{ending}" for name in ([names[split]] if names[split] else _ALIASES.get(split, (split,)))]
                for split, ending in needed
            ]
            yield from _folder(corpus["path"], f"{path}.{pair}.path", starts, _ALIGNED)


def _char_lm(settings: dict, path: str) -> Iterator[Problem]:
    yield from _divides(settings["sizes"], f"{path}.sizes", "heads", "dimension")
    if settings["recipe"]["log_every"] > settings["recipe"]["steps"]:
        yield f"{path}.recipe.log_every", f"{settings['recipe']['log_every']}, of {settings['recipe']['steps']} steps"
    for name, corpus in settings["corpora"].items():
        if corpus["source"] == "text" and not Path(corpus["path"]).exists():
            yield f"{path}.corpora.{name}.path", f"{corpus['path']} is not there"


def _patterns(settings: dict, path: str) -> Iterator[Problem]:
    for name, section in settings.items():
        at = f"{path}.{name}"
        yield from _char_lm(section, at)
        read = section["recipe"]["length"]
        for model, its in section["models"].items():
            if its["length"] < read:
                yield f"{at}.models.{model}.length", f"{its['length']}, of segments of {read}"
            pattern = its.get("factorised", {})
            if (pattern.get("pattern") == "fixed") != ("summary" in pattern):
                yield f"{at}.models.{model}.factorised.summary", "fixed has one, and strided none"
        for corpus, source in section["corpora"].items():
            if source["source"] == "digits":
                yield from _digits(source["images"], section["rows"], read, f"{at}.corpora.{corpus}")


def _captioning(settings: dict, path: str) -> Iterator[Problem]:
    for side in ("encoder", "decoder"):
        yield from _divides(settings["architecture"], f"{path}.architecture", f"{side}_attention_heads", "d_model")
    source = settings["source"]
    if source["source"] == "karpathy":
        if not Path(source["captions"]).is_file():
            yield f"{path}.source.captions", f"there is no file {source['captions']}"
        if not Path(source["regions"]).is_dir():
            yield f"{path}.source.regions", f"there is no folder {source['regions']}"
    elif settings["shown"] > source["images"]["test"]:
        yield f"{path}.shown", f"{settings['shown']}, of {source['images']['test']} test images"


def _digits(images: dict, rows: dict, length: int, path: str) -> Iterator[Problem]:
    if length != 65:
        yield path, f"segments of {length}; an image of digits has 64 pixels and the symbol before them"
    for split, count in images.items():
        if count % rows[split]:
            yield f"{path}.images.{split}", f"{count}, which {rows[split]} rows do not divide"
    if sum(images.values()) > 1797:
        yield f"{path}.images", f"{sum(images.values())}; there are 1797"


def _retrofit(settings: dict, path: str) -> Iterator[Problem]:
    yield from _corpus(settings["corpus"], f"{path}.corpus", ("train", "valid"))
    yield from _methods(settings["rules"], f"{path}.rules", settings["students"]["points"])
    for recall in settings["recalls"]:
        # The shortest bet that certifies a head which misses nothing: sparselib.huggingface.guarantee; importing it is slow.
        certain = -math.log(1 - settings["confidence"])
        needed = math.ceil(certain / math.log1p(0.9 * (1 - recall) / recall)) if recall < 1 else math.inf
        if settings["sequences"]["calibrate"] // 2 < needed:
            at = f"{settings['sequences']['calibrate']}, of which half calibrates"
            yield f"{path}.sequences.calibrate", f"{at}; a recall of {recall} needs {needed} there"
    if settings["block"] > settings["length"]:
        yield f"{path}.block", f"{settings['block']} tokens, of sequences of {settings['length']}"


_SECTIONS = {
    "masked_lm": _masked_lm,
    "translation": _translation,
    "char_lm": _char_lm,
    "patterns": _patterns,
    "captioning": _captioning,
    "forms": _forms,
    "normalizer_speed": _normalizer_speed,
    "retrofit": _retrofit,
}


def _corpus(corpus: dict, path: str, splits: Iterable[str]) -> Iterator[Problem]:
    """Of text in one language."""
    if corpus["source"] == "folder":
        yield from _folder(corpus["path"], f"{path}.path", [[split] for split in splits], _TEXT)


def _folder(folder: str, path: str, starts: list[list[str]], endings: tuple[str, ...]) -> Iterator[Problem]:
    """A folder with a file for each of ``starts``, under any of its names."""
    if not Path(folder).is_dir():
        yield path, f"there is no folder {folder}"
        return
    files = [file.name for file in Path(folder).iterdir()]
    for names in starts:
        # Text may be in several files, train-1.txt and so on; aligned text is in one.
        several = endings == _TEXT
        if not any(
            (file.startswith(name) and file.endswith(endings)) if several else file in [name + end for end in endings]
            for file in files
            for name in names
        ):
            yield path, f"{folder} has no {' or '.join(names)}{'*' if several else ''}"


def _divides(sizes: dict, path: str, heads: str, width: str) -> Iterator[Problem]:
    if sizes[width] % sizes[heads]:
        yield f"{path}.{heads}", f"{sizes[heads]} does not divide {width} {sizes[width]}"


def _named(name: str, path: str) -> Iterator[Problem]:
    """Names become those of files and of rows."""
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or name.startswith("."):
        yield f"{path}.{name}", "a name has letters, digits, '-', '_' and '.'"


def _clusters(methods: dict[str, dict], predictor: str) -> set[int]:
    return {n for method in methods.values() if method["predictor"] == predictor for n in _values(method["clusters"])}


def _values(value: object) -> list:
    return value if isinstance(value, list) else [value]
