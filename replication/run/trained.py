"""Every model that a configuration trains: its folder, stage, settings, text and measurements."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from replication.config import Config, Section
from replication.files.books import LINKED
from replication.run.layout import (
    ADAPTERS,
    CAPTIONER_FILES,
    CHARACTER_FILES,
    MASKED_LM_FILES,
    TRANSLATOR_FILES,
    Captioning,
    MaskedLM,
    NormalizerSpeed,
    ParallelText,
    Symbols,
    Translation,
    results_folder,
)

#: Models of Table 25 of Explicit Sparse Transformer, in the order of training: implementation and normaliser.
CONTENDERS = (
    ("torch", "softmax"),
    ("sparselib", "topk"),
    *product(("sparselib", "entmax"), ("sparsemax",)),
    *product(("sparselib", "entmax"), ("entmax15",)),
    *product(("sparselib", "entmax"), ("entmax_alpha",)),
)


@dataclass(frozen=True)
class TrainedModel:
    """A model, named by its folder below the profile's results, which is also its checkpoint's name."""

    name: str
    #: Command that trains it.
    stage: str
    #: Settings and seed that decide its weights, as plain JSON.
    run: dict[str, object]
    #: Files that it is trained and validated on.
    text: tuple[Path, ...]
    #: File or folder that exists once the text does, as the workflow declares it.
    made_from: Path
    #: Tables of what is measured with it.
    measured: tuple[Path, ...]
    #: Files that its training leaves.
    files: tuple[str, ...]
    #: The one of them with the weights that training changed.
    weights: str = "model.safetensors"


@dataclass(frozen=True)
class Cell:
    """A translator with one attention form: a row of the companion paper's tables, with one seed."""

    name: str
    form: str
    budget: int | None
    seed: int

    @property
    def columns(self) -> dict[str, object]:
        """Return what tables say of it."""
        return {"form": self.form, "budget": self.budget, "seed": self.seed}


def members(group: Section | dict[str, Section] | None) -> dict[str, Section]:
    """Return the sections of a group by the names that the user wrote, in their order; none without a group."""
    if group is None or isinstance(group, dict):
        return group or {}
    fields = {field.alias or name: name for name, field in type(group).model_fields.items()}
    return {name: getattr(group, fields[name]) for name in group.given()}


def trained_models(config: Config) -> dict[str, TrainedModel]:
    """Return every model of a configuration, by its name."""
    sections = {
        "masked_lm": _masked_lm,
        "translation": _translation,
        "char_lm": _char_lm,
        "patterns": _patterns,
        "forms": _forms,
        "captioning": _captioning,
        "normalizer_speed": _normalizer_speed,
    }
    chosen = [models for section, models in sections.items() if getattr(config, section) is not None]
    return {model.name: model for models in chosen for model in models(config, results_folder(config.profile))}


def symbol_lms(config: Config) -> dict[str, Section]:
    """Return the sections that train models of symbols, by their folder below the results."""
    sections = {"char_lm": config.char_lm} if config.char_lm else {}
    return sections | {f"patterns/{name}": section for name, section in members(config.patterns).items()}


def cells(section: Section) -> list[Cell]:
    """Return the translators of a unit of `forms`; Full has no budget, so all of its budgets are one cell."""
    found = {}
    for run in section.runs:
        for form, budget, seed in product(run.forms, run.budgets, run.seeds):
            budget = None if form == "Full" else budget
            suffix = "" if budget is None else f"_k{budget}"
            name = f"{form.lower().replace(' ', '-')}{suffix}_seed{seed}"
            found[name] = Cell(name, form, budget, seed)
    return list(found.values())


def cell_jobs(section: Section, chosen: Callable[[Cell], bool] = lambda cell: True) -> Iterator[tuple[int, list[Cell]]]:
    """Yield number and cells of every job that trains or measures the chosen cells."""
    found = [cell for cell in cells(section) if chosen(cell)]
    for start in range(0, len(found), section.models_per_job):
        yield start // section.models_per_job, found[start : start + section.models_per_job]


def word_alignment_is_known(section: Section, pair: str) -> bool:
    """Return whether a corpus says which words of its sentences are translations of each other."""
    corpus = section.corpus[pair]
    linked_by_hand = corpus.source == "bible" and tuple(pair.split("-")) == LINKED
    return (linked_by_hand or "keys" in corpus.given()) and "block_words" not in section.given()


def masked_lm_files(section: Section) -> tuple[str, ...]:
    """Return the names of the files that training leaves of the masked language model."""
    return (*MASKED_LM_FILES, *([ADAPTERS] if "adapter_rank" in section.model.given() else []))


def _picked(section: Section, *keys: str) -> dict[str, object]:
    given = section.given()
    return {key: given[key] for key in keys}


def _masked_lm(config: Config, results: Path) -> Iterator[TrainedModel]:
    files, settings = MaskedLM(results / "masked_lm"), config.masked_lm
    text = files.tokens("train")
    run = _picked(settings, "model", "training") | {"seed": config.seed}
    names = masked_lm_files(settings)
    weights = ADAPTERS if ADAPTERS in names else MASKED_LM_FILES[0]
    yield TrainedModel("masked_lm/model", "train-masked-lm", run, (text,), text, (files.perplexity,), names, weights)


def _translation(config: Config, results: Path) -> Iterator[TrainedModel]:
    settings = config.translation
    run = _picked(settings, "architecture", "training")
    run |= {"pretraining": settings.given().get("pretraining"), "seed": config.seed}
    for pair in settings.corpus:
        files = Translation(results / "translation" / pair)
        text = tuple(files.pieces(*pair.split("-")))
        yield TrainedModel(
            f"translation/{pair}/model", "train-translation", run, text, files.data, (files.bleu,), TRANSLATOR_FILES
        )


def _char_lm(config: Config, results: Path) -> Iterator[TrainedModel]:
    yield from _symbols("char_lm", config.char_lm, results)


def _patterns(config: Config, results: Path) -> Iterator[TrainedModel]:
    for name, section in members(config.patterns).items():
        yield from _symbols(f"patterns/{name}", section, results)


def _symbols(folder: str, section: Section, results: Path) -> Iterator[TrainedModel]:
    models = members(section.models)
    for corpus, model, seed in product(section.corpora, models, section.seeds):
        files = Symbols(results / folder / corpus)
        run = {"settings": section.sizes.given() | models[model].given()}
        run |= _picked(section, "recipe", "rows") | {"seed": seed}
        yield TrainedModel(
            f"{folder}/{corpus}/models/{model}/seed{seed}",
            "train-characters",
            run,
            (files.text("train"), files.text("valid")),
            files.summary,
            (files.model(model, seed) / "measured.csv",),
            CHARACTER_FILES,
        )


def _captioning(config: Config, results: Path) -> Iterator[TrainedModel]:
    files, settings = Captioning(results / "captioning"), config.captioning
    text = files.pictures("train")
    models = members(settings.models)
    for model, seed in product(models, settings.seeds):
        run = {"model": models[model].given()} | _picked(settings, "architecture", "limits", "training")
        yield TrainedModel(
            f"captioning/models/{model}/seed{seed}",
            "train-captioner",
            run | {"seed": seed},
            (text,),
            text,
            (files.model(model, seed) / "measured.csv",),
            CAPTIONER_FILES,
        )


def _forms(config: Config, results: Path) -> Iterator[TrainedModel]:
    for unit, section in members(config.forms).items():
        for pair, cell in product(section.corpus, cells(section)):
            files = ParallelText(results / "forms" / unit / pair)
            yield TrainedModel(
                f"forms/{unit}/{pair}/{cell.name}",
                "train-forms",
                _picked(section, "architecture", "training") | cell.columns,
                tuple(files.pieces(*pair.split("-"))),
                files.data,
                (files.cell(cell.name) / "measured.csv",),
                TRANSLATOR_FILES,
            )


def _normalizer_speed(config: Config, results: Path) -> Iterator[TrainedModel]:
    files, settings = NormalizerSpeed(results / "normalizer_speed"), config.normalizer_speed
    source, target = next(iter(settings.corpus)).split("-")
    run = _picked(settings, "architecture", "training", "top_k") | {"seed": config.seed}
    for implementation, normalizer in CONTENDERS:
        yield TrainedModel(
            f"normalizer_speed/models/{implementation}/{normalizer}",
            "train-normalizers",
            run,
            tuple(files.pieces(source, target)),
            files.data,
            (),
            TRANSLATOR_FILES,
        )
