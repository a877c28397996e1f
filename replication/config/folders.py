"""Checks of the user's folders of text that a profile names."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from replication.files.packages import installed_taggers, missing_tagger
from replication.files.texts import (
    ALIASES,
    ANY_ENDING,
    aligned_file,
    renaming,
    symbol_file,
    text_files,
    with_other_ending,
)
from replication.schema import Problem, Section
from replication.schema import types as t

ENGLISH = "en"


def aligned_names(languages: Sequence[str], corpus: Section, splits: Sequence[str]) -> Iterator[list[str]]:
    """Yield the names that each file of a folder may have, without ``.gz``."""
    needed = [(split, ending) for split in splits for ending in (*languages, *t.values_of(corpus.documents))]
    if corpus.keys is not None:
        needed += [("test", f"{corpus.keys}.{language}") for language in languages]
    for split, ending in needed:
        named = corpus.names and getattr(corpus.names, split)
        yield [f"{name}.{ending}" for name in ([named] if named else ALIASES.get(split, [split]))]


def lacking_texts(folder: str, splits: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each split of text that a folder lacks."""
    for split in splits:
        if not text_files(folder, split):
            found = renaming(folder, split) or with_other_ending(folder, split)
            yield f"must be a folder with a file {split}* {ANY_ENDING}, got {folder!r}{found}"


def lacking_aligned(languages: Sequence[str], corpus: Section, splits: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each file of aligned text that a folder lacks."""
    for names in aligned_names(languages, corpus, splits):
        if aligned_file(corpus.path, names) is None:
            found = next(filter(None, (with_other_ending(corpus.path, name) for name in names)), "")
            yield f"must be a folder with a file {' or '.join(names)}, plain or .gz, got {corpus.path!r}{found}"


def of_folder(folder: str, lacking: Callable[[], Iterator[str]]) -> Iterator[Problem]:
    """Yield a problem if there is no such folder, for each file that it lacks, and for a file that it has twice."""
    if not Path(folder).is_dir():
        yield ("path",), f"must be an existing folder, got {folder!r}"
        return
    try:
        for what in lacking():
            yield ("path",), what
    except ValueError as error:
        yield ("path",), f"must have each text once: {error}"


def untagged(corpus: Section, split: str) -> Iterator[Problem]:
    """Yield a problem if a split has no parts of speech, and no tagger of its language is installed."""
    language = getattr(corpus, "language", None) or ENGLISH
    if installed_taggers(language):
        return
    if corpus.source == "folder" and any(
        ".conllu" in path.suffixes for path in sorted(Path(corpus.path).glob(f"{split}*"))
    ):
        return
    key = "language" if "language" in type(corpus).model_fields else "source"
    yield (key,), f"{missing_tagger(language)}, or give CoNLL-U with parts of speech"


def lacking_symbols(path: str) -> Iterator[Problem]:
    """Yield a problem if there is no such file or folder of characters, or a folder lacks a split or has it twice."""
    if not Path(path).exists():
        yield (), f"must be an existing file or folder, got {path!r}"
    if not Path(path).is_dir():
        return
    try:
        for split in ("train", "valid"):
            if symbol_file(path, split) is None:
                found = with_other_ending(path, f"{split}.")
                yield (), f"must be a folder with a file {split}.txt or {split}.txt.gz, got {path!r}{found}"
        symbol_file(path, "test")
    except ValueError as error:
        yield (), f"must have each text once: {error}"
