"""The user's files behind a run's texts, for errors that stages raise about them."""

from collections.abc import Iterator
from pathlib import Path

from replication.config import Config, Section
from replication.config.folders import aligned_names
from replication.corpora.sources import name_of
from replication.files.texts import aligned_file, symbol_file, text_files
from replication.run.layout import ALL_SPLITS
from replication.run.places import symbol_place, symbol_place_names
from replication.run.text_places import ParallelPlace, TokenPlace, parallel_place_names, token_place_names


def with_origin(message: str, config: Config) -> str:
    """Return an error's message with the user's file or data set, if the message is about a text that was made from it.

    Parameters
    ----------
    message : str
        The error, which may name files of the run.
    config : Config
        The run's configuration.
    """
    own = next((origin for path, origin in _texts(config) if str(path) in message), "")
    return f"{message} (the text of {own})" if own and own not in message else message


def _texts(config: Config) -> Iterator[tuple[Path, str]]:
    """Yield file and origin of every text of a run."""
    for text in (TokenPlace(config, place) for place in token_place_names(config)):
        for split in text.splits:
            found = text_files(text.corpus.path, split) if text.corpus.source == "folder" else []
            origin = ", ".join(map(str, found)) or _split_of(text.corpus, split)
            yield from ((path, origin) for path in (text.files.tokens(split), text.files.corpus(split)))
    for text in (ParallelPlace(config, place) for place in parallel_place_names(config)):
        for split in text.splits:
            for language in text.pair:
                found = None
                if text.corpus.source == "folder":
                    (names,) = (
                        n for n in aligned_names([language], text.corpus, [split]) if n[0].endswith(f".{language}")
                    )
                    found = aligned_file(text.corpus.path, names)
                yield text.files.corpus(split, language), str(found or _split_of(text.corpus, split))
    for name in symbol_place_names(config):
        section, files = symbol_place(config, name)
        corpus = section.corpora[name.rpartition("/")[2]]
        for split in ALL_SPLITS:
            folder = corpus.source == "text" and Path(corpus.path).is_dir()
            found = symbol_file(corpus.path, split) if folder else None
            yield files.text(split), str(found or _split_of(corpus, split))


def _split_of(corpus: Section, split: str) -> str:
    return f"{name_of(corpus.given())}, split {split}"
