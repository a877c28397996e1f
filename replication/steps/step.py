"""The declaration of a step: what one job of the workflow runs, reads, makes and sees of the configuration."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from replication.config import Config
from replication.corpora.inputs import files_in, files_of
from replication.run.layout import results_folder


def no_files() -> list[Path]:
    """Return the files of a step that reads none of the user's."""
    return []


@dataclass(frozen=True, kw_only=True)
class Step:
    """A job: ``replicate COMMAND PLACE --OPTION VALUE``.

    Attributes
    ----------
    command : str
        Stage that it runs: its function's name.
    message : str
        What it does, for the terminal.
    makes, folders : sequence of Path
        Files that it makes, and folders that it makes as a whole.
    reads : sequence of Path
        Files and folders of the run that it reads.
    sees : dict
        The settings that its stage receives, by their path such as ``masked_lm/projection``, with what decides its results: the
        value, or the part of it that the step uses.
    place : str
        Folder below the results that it works on, if its command takes one.
    options : dict
        Further options of the command, by name; a list repeats its option.
    predictors : set of str
        Classes of ``sparselib/predictors`` that it computes with, which it finds by their names.
    text, pretrained : callable
        Return the user's files that it reads: text, whose content decides when to run again, and models.
    priority : int
        Long jobs, and jobs that long ones wait for, start first: otherwise cores would be idle at the end of the run.
    cores : str
        ``one``, ``half`` or ``all``; timings take all, which keeps other jobs from disturbing them.
    """

    command: str
    message: str
    makes: Iterable[Path] = ()
    folders: Iterable[Path] = ()
    reads: Iterable[Path] = ()
    sees: Mapping[str, object] = field(default_factory=dict)
    place: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    predictors: Iterable[str] = ()
    text: Callable[[], list[Path]] = no_files
    pretrained: Callable[[], list[Path]] = no_files
    priority: int = 0
    cores: str = "one"

    @property
    def outputs(self) -> list[Path]:
        """Return all files and folders that it makes."""
        return [*self.makes, *self.folders]

    @property
    def arguments(self) -> dict[str, list[str]]:
        """Return the place and the options as words, by name."""
        return {"place": as_words(self.place), **{name: as_words(value) for name, value in self.options.items()}}

    @property
    def words(self) -> list[str]:
        """Return the words of its command line, without configuration."""
        options = [word for name in self.options for value in self.arguments[name] for word in (f"--{name}", value)]
        return [self.command.replace("_", "-"), *([self.place] if self.place else []), *options]

    @property
    def name(self) -> str:
        """Return the name of its rule: the command, and after two underscores what tells it from others of that command."""
        parts = (self.place, *(self.arguments[name][0] for name in self.options))
        rest = "_".join(re.sub(r"\W+", "_", part).strip("_") for part in parts if part)
        return f"{self.command}__{rest}" if rest else self.command


def as_words(value: object) -> list[str]:
    """Return a value, or the values of a list, as they stand on a command line."""
    return [str(each) for each in (value if isinstance(value, list | tuple) else [value])]


@dataclass(frozen=True)
class Declaring:
    """What declarations of a configuration start from."""

    run: Config
    #: Models that are imported instead of trained, by name.
    imported: frozenset[str] = frozenset()

    @property
    def results(self) -> Path:
        """Return the run's folder."""
        return results_folder(self.run.profile)

    @cached_property
    def _given(self) -> dict[str, object]:
        return self.run.given()

    def see(self, base: str, *keys: str) -> dict[str, object]:
        """Return settings by their paths, as the user wrote them: keys of the section at ``base``, or of the whole profile."""
        section = self._given
        for part in base.split("/") if base else ():
            section = section[part]
        return {f"{base}/{key}".strip("/"): section.get(key) for key in keys}


def text_of(corpus, splits: Iterable[str], languages: Iterable[str] = ()) -> Callable[[], list[Path]]:
    """Return a function for the user's files that a text is read from."""
    return lambda: files_of(corpus, tuple(splits), tuple(languages))


def model_in(name: str | None) -> Callable[[], list[Path]]:
    """Return a function for the files of a pretrained model or tokenizer in a folder of the user."""
    return lambda: files_in(name)
