"""Corpora of text: from packages, folders or the Hugging Face hub."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from math import inf
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from replication.config.bible import BibleCharacters, BiblePairs, BibleText, installed
from replication.config.folders import lacking_aligned, lacking_symbols, lacking_texts, of_folder, untagged
from replication.files.books import package_of
from replication.files.packages import package_file
from replication.files.texts import ALIASES
from replication.schema import MISSING, Problem, Section, checked
from replication.schema import types as t

Language = t.matching("[a-z]{2,3}", "a language code such as en")
LANGUAGE = Field(
    None,
    description="Language of text without parts of speech, `en` if left out. spaCy's small model of this language tags the "
    "validation split, and must be installed.",
)


class FolderText(Section):
    """Files `train*` and `valid*` of a folder, each `.txt` or `.conllu`, plain or `.gz`."""

    source: Literal["folder"]
    path: t.Location = Field(description="Path of the folder.")
    auxiliaries: t.Maybe[t.Unique[t.Text]] = Field(
        None, description="Prefixes of tags (column 5 of CoNLL-U) whose words are tagged `AUX`."
    )
    language: t.Maybe[Language] = LANGUAGE


class HubText(Section):
    """A text data set of the Hugging Face hub, or a folder saved by `datasets`."""

    source: Literal["hub"]
    name: t.Location = Field(description="Name of the data set, or path of the folder.")
    configuration: t.Maybe[t.Text] = Field(None, description="Configuration of the data set.")
    language: t.Maybe[Language] = LANGUAGE


TextCorpus = TypeAliasType(
    "TextCorpus",
    Annotated[
        Annotated[BibleText, checked(installed, files=True)] | FolderText | HubText,
        Field(discriminator="source", description="Text in one language."),
    ],
)


class SplitNames(Section):
    """Names of the splits in the source."""

    train: t.Maybe[t.Text] = Field(None, description="Name of the training split; `train` if left out.")
    valid: t.Maybe[t.Text] = Field(None, description="Name of the validation split; `valid` if left out.")
    test: t.Maybe[t.Text] = Field(None, description="Name of the test split; `test` if left out.")


class FolderPairs(Section):
    """Files `train.en`, `train.de`, ... of a folder, aligned line by line, plain or `.gz`."""

    source: Literal["folder"]
    path: t.Location = Field(description="Path of the folder.")
    names: t.Maybe[SplitNames] = Field(None, description="Names of the splits in file names.")
    keys: t.Maybe[t.Text] = Field(
        None,
        description="Name of files with a key for each word: `strongs` for `train.strongs.en`, ... A key that both sentences "
        "have once links its words.",
    )
    documents: t.Maybe[t.Text] = Field(
        None,
        description="Name of files with each sentence's place: `verses` for `train.verses`, ... with lines such as "
        "`Genesis 13:1`. The words before the last colon name the document.",
    )


class HubPairs(Section):
    """A data set of the Hugging Face hub with a column `translation`, or a folder saved by `datasets`."""

    source: Literal["hub"]
    name: t.Location = Field(description="Name of the data set, or path of the folder.")
    configuration: t.Maybe[t.Text] = Field(None, description="Configuration of the data set.")
    names: t.Maybe[SplitNames] = Field(
        None, description="Names of the splits, or rows of a split such as `test[10:20]`."
    )


ParallelCorpus = TypeAliasType(
    "ParallelCorpus",
    Annotated[
        BiblePairs | FolderPairs | HubPairs,
        Field(discriminator="source", description="Aligned sentences in two languages."),
    ],
)
Pairs = Annotated[
    dict[t.matching("[a-z]+-[a-z]+", "two languages such as en-de"), ParallelCorpus],
    Field(min_length=1),
]


class Digits(Section):
    """scikit-learn's handwritten digits: a start symbol and 64 pixels each."""

    source: Literal["digits"]
    images: t.ThreeSplits = Field(description="Images per split, at most 1797 in total.")
    seed: t.Seed = Field(description="Seed of the split.")


class TextCharacters(Section):
    """Bytes of one file such as enwik8 (90 % training, 5 % validation, 5 % test), or of a folder with a file per split.

    A folder has `train`, `valid` and `test`, each `.txt` or `.txt.gz`. Without a test file, the second half of `valid` is the
    test split.
    """

    source: Literal["text"]
    path: Annotated[t.Location, checked(lacking_symbols, files=True)] = Field(description="Path of the file or folder.")


CharacterCorpus = TypeAliasType(
    "CharacterCorpus",
    Annotated[
        Annotated[BibleCharacters, checked(installed, files=True)] | Digits | TextCharacters,
        Field(discriminator="source", description="Symbols: bytes of text, or pixels."),
    ],
)


def text_corpus(*splits: str, tagged: str = "") -> type[TextCorpus]:
    """Return the type of a text corpus with these splits, of which one can need parts of speech."""

    def files(corpus: TextCorpus) -> Iterator[Problem]:
        if isinstance(corpus, FolderText):
            yield from of_folder(corpus.path, lambda: lacking_texts(corpus.path, splits))
        if tagged:
            yield from untagged(corpus, tagged)

    return Annotated[TextCorpus, checked(files, files=True)]


def _same_rows(names: SplitNames | None, splits: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each split that has rows of an earlier one, and the problem."""
    rows = {split: _rows((names and getattr(names, split)) or split) for split in splits}
    for first, second in combinations(splits, 2):
        (one, start, end), (other, other_start, other_end) = rows[first], rows[second]
        if one == other and start < other_end and other_start < end:
            yield second, f"must be other text than {first}, got {getattr(names, second) or second}"


def _rows(name: str) -> tuple[str, int, float]:
    """Return the split, the first row and the end of a name such as ``train[10:]``."""
    split, start, end = re.fullmatch(r"(.*?)(?:\[(\d*):(\d*)\])?", name, re.DOTALL).groups()
    canonical = next((key for key, aliases in ALIASES.items() if split in (*aliases, "validation")), split)
    return canonical, int(start or 0), int(end) if end else inf


def parallel_corpora(*splits: str) -> type[dict[str, ParallelCorpus]]:
    """Return the type of corpora by language pair with these splits."""

    def problems(pairs: dict[str, ParallelCorpus]) -> Iterator[Problem]:
        for pair, corpus in pairs.items():
            if len(set(pair.split("-"))) < 2:
                yield (pair,), f"must be two different languages, got {pair}"
            if isinstance(corpus, BiblePairs):
                if "test" in splits and corpus.test is None:
                    yield (pair, "test"), MISSING
                for path, what in corpus.problems_of(pair):
                    yield (pair, *path), what
            else:
                for split, what in _same_rows(corpus.names, splits):
                    yield (pair, "names", split), what

    def files(pairs: dict[str, ParallelCorpus]) -> Iterator[Problem]:
        for pair, corpus in pairs.items():
            if isinstance(corpus, BiblePairs):
                for version in pair.split("-"):
                    try:
                        package_file(*package_of(version))
                    except FileNotFoundError as error:
                        yield (pair, "source"), f"must have its package: {error}"
            if isinstance(corpus, FolderPairs):
                languages = pair.split("-")
                lacking = partial(lacking_aligned, languages, corpus, splits)
                for path, what in of_folder(corpus.path, lacking):
                    yield (pair, *path), what

    return Annotated[Pairs, checked(problems), checked(files, files=True)]
