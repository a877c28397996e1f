"""A whole profile, and its parsing."""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BeforeValidator, Field, ValidationError

from replication.config.budgets import Budgets
from replication.config.captioning import Captioning
from replication.config.char_lm import CharLM, Patterns
from replication.config.errors import ConfigurationError, sentences
from replication.config.masked_lm import MaskedLM
from replication.config.retrofit import Retrofit
from replication.config.scaling import Scaling
from replication.config.translation import Forms, NormalizerSpeed, Translation
from replication.schema import MISSING, Problem, Reading, Section, checked, problem, shown
from replication.schema import types as t


def _folder_or_false(value: object) -> object:
    if value is False:
        return value
    if isinstance(value, str) and value:
        return t.expanded(value)
    raise problem(f"must be a folder or false, got {shown(value)}")


#: Keys that say where a run takes place: in another place it is the same run.
WHERE_IT_RUNS = ("scale", "gpus", "node_cores")
#: Name of the folder of the papers' printed tables among the runs.
PAPERS = "papers"


def _results(profile: str) -> Iterator[Problem]:
    if profile == PAPERS:
        yield (), f"must be another name than {PAPERS}, which is that of the papers' own tables"
    folder = Path("results", profile)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        yield (), f"must have a folder {folder} for its results, but {existing} is a file"
    elif not os.access(existing, os.W_OK | os.X_OK):
        mount = "in a container, mount a folder of yours there (profiles/README.md)"
        yield (), f"must have a folder {folder} for its results, but {existing} is read-only; {mount}"


class Config(Section):
    """One profile: what to train and measure, and where to run ([clusters and GPUs](../profiles/README.md))."""

    profile: Annotated[t.ShortName, checked(_results, files=True)] = Field(
        description="Name of the folder below `results/`."
    )
    seed: t.Seed = Field(
        description="Seed of the model: its weights, its data order, and the sequences that become graphs."
    )
    student_seeds: t.Unique[t.Seed] = Field(
        description="Seeds of everything that is learned or drawn on top of the model: projections, clusters, random patterns."
    )
    checkpoints: Annotated[str | Literal[False], BeforeValidator(_folder_or_false)] = Field(
        False,
        description="Folder of trained models to use instead of training. A model with other settings, another seed or other "
        "text is refused with the difference named; other code is reported in its log. `false` trains all models.",
    )
    scale: Literal["laptop", "paper"] = Field(
        "laptop", description="Size of the resources that jobs ask a cluster for. Results do not depend on this key."
    )
    gpus: t.CountOrZero = Field(
        1, description="GPUs of a training; 0 on a cluster without. Results do not depend on this key."
    )
    node_cores: t.Count = Field(4, description="Cores of a cluster's node. Results do not depend on this key.")
    budgets: Budgets = Budgets()
    masked_lm: t.Maybe[MaskedLM] = None
    translation: t.Maybe[Translation] = None
    char_lm: t.Maybe[CharLM] = None
    patterns: t.Maybe[Patterns] = None
    captioning: t.Maybe[Captioning] = None
    forms: t.Maybe[Forms] = None
    scaling: t.Maybe[Scaling] = None
    normalizer_speed: t.Maybe[NormalizerSpeed] = None
    retrofit: t.Maybe[Retrofit] = None

    def decisive(self) -> dict[str, object]:
        """Return the keys and values that were given, without those that say where the run takes place."""
        return {key: value for key, value in self.given().items() if key not in WHERE_IT_RUNS}

    def problems(self) -> Iterator[Problem]:
        if not any(getattr(self, task) for task in TASKS):
            yield (TASKS[0],), f"{MISSING}; give it or another of {', '.join(TASKS[1:])}"
        if self.retrofit and self.retrofit.model == "masked_lm" and not self.masked_lm:
            yield ("masked_lm",), f"{MISSING}; retrofit.model needs it"
        if self.retrofit and self.retrofit.model == "masked_lm" and self.masked_lm:
            alpha = self.masked_lm.model.attention_alpha
            if self.retrofit.alpha != alpha:
                yield ("retrofit", "alpha"), f"must be {alpha}, masked_lm.model's own, got {self.retrofit.alpha}"
        if self.gpus == 0:
            yield from _half_precision(self)


def _half_precision(section: Section) -> Iterator[Problem]:
    """Yield every key below a section that trains in half precision, which needs a GPU."""
    for name, value in section:
        if name == "fp16" and value:
            yield (name,), "must be false without GPUs (gpus: 0), got true"
        parts = value.items() if isinstance(value, dict) else [((), value)]
        for key, part in parts:
            if isinstance(part, Section):
                yield from (((name, *([key] if key else []), *path), what) for path, what in _half_precision(part))


#: The sections that train or measure something.
TASKS = tuple(name for name, field in Config.model_fields.items() if field.default is None)


def parse(settings: dict[str, object], files: bool = True) -> Config:
    """Return the profile of these settings.

    Parameters
    ----------
    settings : dict
        Sections and keys, as YAML has them.
    files : bool
        Whether the files and folders that the profile names must exist.

    Raises
    ------
    ConfigurationError
        If the profile cannot work: a line for each problem.
    """
    reading = Reading(files)
    try:
        return Config.model_validate(settings, context=reading)
    except ValidationError as error:
        raise ConfigurationError(sentences(error, settings, reading)) from None


def load(path: str | Path, files: bool = False) -> Config:
    """Return the profile in a YAML file. Files that it names can be missing, unless `files` is true.

    Parameters
    ----------
    files : bool
        As in :func:`parse`.

    Raises
    ------
    ConfigurationError
        If the file is not YAML, or as :func:`parse`.
    """
    return _loaded(path, Path(path).read_text(encoding="utf-8"), files)


# A stage needs its configuration twice: for its work, and for the manifest.
@lru_cache(maxsize=1)
def _loaded(path: str | Path, text: str, files: bool) -> Config:
    try:
        settings = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError([f"{path}: must be YAML, got {' '.join(str(error).split())}"]) from None
    return parse(settings, files)
