"""Sections and files by place: the folder below a run's results, such as ``translation/en-de``, that a stage works on."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from replication.config import Config, Section
from replication.run.layout import (
    Captioning,
    GraphTask,
    MaskedLM,
    Retrofit,
    Symbols,
    Translation,
    results_folder,
    scaling_table,
)
from replication.run.trained import Cell, cells, members, symbol_lms

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
    return section_of(config, "masked_lm"), MaskedLM(results_folder(config.profile) / "masked_lm")


def predicted_blocks(config: Config) -> tuple[Section, MaskedLM]:
    """Return section and files of the masked language model, if its blocks are predicted."""
    section, files = masked_lm(config)
    if section.blocks is None:
        raise ValueError(f"masked_lm.blocks: the configuration {config.profile} has no such section")
    return section, files


def scaling(config: Config) -> tuple[Section, Path]:
    """Return section and table of attention's time and memory against its length."""
    return section_of(config, "scaling"), scaling_table(config.profile)


def captioning(config: Config) -> tuple[Section, Captioning]:
    """Return section and files of captioning."""
    return section_of(config, "captioning"), Captioning(results_folder(config.profile) / "captioning")


def region_features(config: Config) -> Path:
    """Return the file, or the user's folder, that has the features of image regions."""
    section, files = captioning(config)
    return files.regions if section.source.source == "scenes" else Path(section.source.regions)


def retrofit(config: Config) -> tuple[Section, Retrofit]:
    """Return section and files of the model that is sparsified."""
    return section_of(config, "retrofit"), Retrofit(results_folder(config.profile) / "retrofit")


def translators(config: Config) -> list[str]:
    """Return the places of translators whose attention graphs are predicted."""
    return [f"translation/{pair}" for pair in config.translation.corpus] if config.translation else []


def translator(config: Config, task: str) -> tuple[Section, Translation, tuple[str, str]]:
    """Return section, files and languages of a translator."""
    files = Translation(results_folder(config.profile) / task)
    return config.translation, files, tuple(task.partition("/")[2].split("-"))


def graph_task_names(config: Config) -> list[str]:
    """Return every task whose attention graphs are predicted."""
    return [*(["masked_lm"] if config.masked_lm else []), *translators(config)]


def graph_task(config: Config, task: str) -> tuple[Section, GraphTask, int]:
    """Return section, files and number of layers of a task whose attention graphs are predicted."""
    if task == "masked_lm":
        section, files = masked_lm(config)
        return section, files, section.layers
    section, files, _ = translator(config, task)
    return section, files, section.architecture.decoder_layers


def symbol_place_names(config: Config) -> list[str]:
    """Return the place of every corpus of characters or pixels."""
    return [f"{folder}/{corpus}" for folder, section in symbol_lms(config).items() for corpus in section.corpora]


def symbol_place(config: Config, place: str) -> tuple[Section, Symbols]:
    """Return section and files of a corpus of characters or pixels."""
    folder = place.rpartition("/")[0]
    kind = folder.removeprefix("patterns/")
    section = config.char_lm if folder == "char_lm" else members(config.patterns)[kind]
    return section, Symbols(results_folder(config.profile) / place)


def cells_of(section: Section, names: list[str] | None) -> list[Cell]:
    """Return the cells of these names, in the configuration's order; all of them without names."""
    return [cell for cell in cells(section) if names is None or cell.name in names]


def section_of(config: Config, name: str) -> Section:
    """Return a section, which the configuration must have."""
    section = getattr(config, name)
    if section is None:
        raise ValueError(f"{name}: the configuration {config.profile} has no such section")
    return section
