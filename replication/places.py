"""Sections and files by place: the folder below a run's results, such as ``translation/en-de``, that a stage works on."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from replication.config import Config, Section
from replication.layout import (
    ALL_SPLITS,
    SPLITS,
    Captioning,
    GraphTask,
    MaskedLM,
    NormalizerSpeed,
    ParallelText,
    Retrofit,
    Symbols,
    Tokens,
    Translation,
    results_folder,
    scaling_table,
)
from replication.trained import Cell, cells, members, symbol_lms

T = TypeVar("T")


def find(name: str, group: Mapping[str, T], kind: str = "place") -> T:
    """Return the member of a group that has a name.

    Parameters
    ----------
    name : str
        Name from the command line.
    group : mapping
        Members that the configuration has, by name.
    kind : str
        What the members are, for the error.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if name in group:
        return group[name]
    near = get_close_matches(name, group, n=1)
    hint = f"did you mean {near[0]}?" if near else f"this configuration has {', '.join(group) or 'none'}"
    raise ValueError(f"{name}: unknown {kind}; {hint}")


def masked_lm(config: Config) -> tuple[Section, MaskedLM]:
    """Return section and files of the masked language model."""
    return _section(config, "masked_lm"), MaskedLM(results_folder(config.profile) / "masked_lm")


def predicted_blocks(config: Config) -> tuple[Section, MaskedLM]:
    """Return section and files of the masked language model, if its blocks are predicted."""
    section, files = masked_lm(config)
    if section.blocks is None:
        raise ValueError(f"masked_lm.blocks: the configuration {config.profile} has no such section")
    return section, files


def scaling(config: Config) -> tuple[Section, Path]:
    """Return section and table of attention's time and memory against its length."""
    return _section(config, "scaling"), scaling_table(config.profile)


def captioning(config: Config) -> tuple[Section, Captioning]:
    """Return section and files of captioning."""
    return _section(config, "captioning"), Captioning(results_folder(config.profile) / "captioning")


def region_features(config: Config) -> Path:
    """Return the file, or the user's folder, that has the features of image regions."""
    section, files = captioning(config)
    return files.regions if section.source.source == "scenes" else Path(section.source.regions)


def retrofit(config: Config) -> tuple[Section, Retrofit]:
    """Return section and files of the model that is sparsified."""
    return _section(config, "retrofit"), Retrofit(results_folder(config.profile) / "retrofit")


def normalizer_speed(config: Config) -> "ParallelPlace":
    """Return the text that normalisers are compared on."""
    _section(config, "normalizer_speed")
    return parallel_places(config)["normalizer_speed"]


def graph_task(config: Config, task: str) -> tuple[Section, GraphTask, int]:
    """Return section, files and number of layers of a task whose attention graphs are predicted."""
    return find(task, graph_tasks(config))


def translator(config: Config, task: str) -> tuple[Section, Translation, tuple[str, str]]:
    """Return section, files and languages of a translator."""
    tasks = graph_tasks(config)
    section, files, _ = find(task, {place: tasks[place] for place in translators(config)})
    return section, files, tuple(task.partition("/")[2].split("-"))


def text_place(config: Config, place: str) -> "TokenPlace":
    """Return the corpus of a place."""
    return find(place, token_places(config))


def parallel_place(config: Config, place: str, below: str = "") -> "ParallelPlace":
    """Return the parallel corpus of a place below a folder."""
    places = parallel_places(config).items()
    return find(place, {name: text for name, text in places if name.startswith(below)})


def symbol_place(config: Config, place: str, below: str = "") -> tuple[Section, Symbols]:
    """Return section and files of a corpus of characters or pixels below a folder."""
    places = symbol_places(config).items()
    return find(place, {name: corpus for name, corpus in places if name.startswith(below)})


def cells_of(section: Section, names: list[str] | None) -> list[Cell]:
    """Return the cells of these names, in the configuration's order; all of them without names."""
    there = {cell.name: cell for cell in cells(section)}
    wanted = [find(name, there, "cell") for name in names or there]
    return [cell for cell in there.values() if cell in wanted]


def _section(config: Config, name: str) -> Section:
    section = getattr(config, name)
    if section is None:
        raise ValueError(f"{name}: the configuration {config.profile} has no such section")
    return section


def translators(config: Config) -> list[str]:
    """Return the places of translators whose attention graphs are predicted."""
    return [f"translation/{pair}" for pair in config.translation.corpus] if config.translation else []


def graph_tasks(config: Config) -> dict[str, tuple[Section, GraphTask, int]]:
    """Return section, files and number of layers of every task whose attention graphs are predicted."""
    results = results_folder(config.profile)
    tasks = {}
    if config.masked_lm:
        tasks["masked_lm"] = (config.masked_lm, MaskedLM(results / "masked_lm"), config.masked_lm.layers)
    for place in translators(config):
        layers = config.translation.architecture.decoder_layers
        tasks[place] = (config.translation, Translation(results / place), layers)
    return tasks


@dataclass(frozen=True)
class TokenPlace:
    """A corpus in one language, and where it is cut into sequences."""

    files: Tokens
    corpus: Section
    length: int
    splits: tuple[str, ...]
    #: File of the tokenizer; `vocab_size` or `pretrained` say how it comes about, if it does here.
    tokenizer: Path
    vocab_size: int | None = None
    pretrained: str | None = None
    #: Splits that are tagged where they have no gold tags.
    tagged: tuple[str, ...] = ()


def token_places(config: Config) -> dict[str, TokenPlace]:
    """Return every corpus that is cut into sequences of subwords."""
    results, places = results_folder(config.profile), {}
    own = Tokens(results / "masked_lm").tokenizer
    if section := config.masked_lm:
        files = MaskedLM(results / "masked_lm")
        source = section.tokenizer.given()
        places["masked_lm"] = TokenPlace(
            files,
            section.corpus,
            section.length,
            SPLITS,
            own,
            source.get("vocab_size"),
            source.get("pretrained"),
            ("valid",),
        )
        for name, corpus in section.unseen.items():
            places[f"masked_lm/unseen/{name}"] = TokenPlace(files.unseen(name), corpus, section.length, ("valid",), own)
    if section := config.retrofit:
        files = Retrofit(results / "retrofit")
        # The run's own model comes with its tokenizer; another model brings one.
        of_run = section.model == "masked_lm"
        places["retrofit"] = TokenPlace(
            files,
            section.corpus,
            section.length,
            SPLITS,
            own if of_run else files.tokenizer,
            pretrained=None if of_run else section.model,
        )
    return places


@dataclass(frozen=True)
class ParallelPlace:
    """A parallel corpus, and where it is cut into subwords."""

    files: ParallelText
    section: Section
    corpus: Section
    pair: tuple[str, str]
    splits: tuple[str, ...] = ALL_SPLITS
    block_words: int | None = None
    #: Splits whose word alignment is written, if it is known.
    aligned: tuple[str, ...] = ()
    #: Another place's folder of binarized text, whose codes and dictionary are taken.
    like: Path | None = None


def parallel_places(config: Config) -> dict[str, ParallelPlace]:
    """Return every parallel corpus."""
    results, places = results_folder(config.profile), {}
    for place in translators(config):
        section, files, pair = config.translation, Translation(results / place), place.partition("/")[2]
        first = section.pretraining
        places[place] = ParallelPlace(
            files,
            section,
            section.corpus[pair],
            tuple(pair.split("-")),
            block_words=section.block_words,
            like=files.pretraining.data if first else None,
        )
        if first:
            places[f"{place}/pretraining"] = ParallelPlace(
                files.pretraining, section, first.corpus[pair], tuple(pair.split("-")), SPLITS
            )
    for unit, section in members(config.forms).items():
        for pair, corpus in section.corpus.items():
            place = f"forms/{unit}/{pair}"
            # Documents are translated in blocks, whose words have no alignment.
            block_words = getattr(section, "block_words", None)
            places[place] = ParallelPlace(
                ParallelText(results / place),
                section,
                corpus,
                tuple(pair.split("-")),
                block_words=block_words,
                aligned=() if block_words else ("test",),
            )
    if section := config.normalizer_speed:
        pair, corpus = next(iter(section.corpus.items()))
        files = NormalizerSpeed(results / "normalizer_speed")
        places["normalizer_speed"] = ParallelPlace(files, section, corpus, tuple(pair.split("-")))
    return places


def symbol_places(config: Config) -> dict[str, tuple[Section, Symbols]]:
    """Return section and files of every corpus of characters or pixels."""
    return {
        f"{folder}/{corpus}": (section, Symbols(results_folder(config.profile) / folder / corpus))
        for folder, section in symbol_lms(config).items()
        for corpus in section.corpora
    }
