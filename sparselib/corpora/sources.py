"""Where a corpus comes from, as one section of the configuration says it."""

from collections.abc import Iterable

from sparselib.corpora.documents import Document
from sparselib.corpora.folder import read_folder


def read_splits(source: dict, splits: list[str]) -> dict[str, Iterable[Document]]:
    """Documents of each split.

    Parameters
    ----------
    source : dict
        ``{"source": "grammar", "words": {split: count}, "seed": 0}``, ``{"source": "folder", "path": ...}`` or
        ``{"source": "hub", "name": ..., "configuration": ...}``.

    Raises
    ------
    ValueError
        For an unknown source.
    """
    arguments = {key: value for key, value in source.items() if key != "source"}
    match source.get("source"):
        case "grammar":
            from sparselib.corpora.grammar import write_corpus

            return write_corpus(**arguments)
        case "folder":
            return {split: read_folder(arguments["path"], split) for split in splits}
        case "hub":
            from sparselib.corpora.hub import read_hub

            return {split: read_hub(split=split, **arguments) for split in splits}
        case other:
            raise ValueError(f"corpus source {other!r} is unknown: it is grammar, folder or hub")
