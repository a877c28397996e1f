"""Files of a user's text in a folder: those that a split has, and the refusal of ambiguous ones."""

import filecmp
import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

#: Endings of text for the masked language model.
ENDINGS = (".txt", ".txt.gz", ".conllu", ".conllu.gz")
#: Names that the files of a split of aligned text may have, if not only the split's own.
ALIASES = {"valid": ("valid", "val", "dev")}
#: What programs and people add to the names of copies: `.bak`, ` (1)`, ` - Copy`, `~`.
COPY = re.compile(
    r"[\s()~]|(?:^|[^a-z]|(?=[A-Z]))(?:bak|backup|copy|old|orig|original|tmp)(?![a-z])|\.[^0-9.]", re.IGNORECASE
)
SYMBOL_ENDINGS = (".txt", ".txt.gz")
ANY_ENDING = f"that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"


def text_files(folder: str | Path, split: str) -> list[Path]:
    """Return the files of a split, in the order of their names.

    Raises
    ------
    ValueError
        If two files are the same text, some files are annotated and others are not, or a name is that of a copy, such as
        ``train.bak.txt`` or ``train (1).txt``.
    """
    paths = [path for path in sorted(Path(folder).glob(f"{split}*")) if path.name.endswith(ENDINGS)]
    for path in paths if len(paths) > 1 else ():
        if COPY.search(_stem(path)[len(split) :]):
            raise ValueError(
                f"{folder}: {path.name} looks like a copy of another file, and would be read beside it; move it away, or "
                f"rename it if it is another part of the text, such as {split}-2.txt"
            )
    for first, second in combinations(paths, 2):
        if (
            _stem(first) == _stem(second)
            or filecmp.cmp(first, second, shallow=False)
            or (".conllu" in first.suffixes) != (".conllu" in second.suffixes)
        ):
            raise ValueError(_both(first, second))
    return paths


def with_other_ending(folder: str | Path, name: str) -> str:
    """Return the remark that a folder has a file of this name with another ending, such as ``train.txt.xz``, or nothing."""
    paths = sorted(path.name for path in Path(folder).glob("*") if path.name.lower().startswith(name.lower()))
    return f", whose {paths[0]} has another ending" if paths else ""


def renaming(folder: str | Path, split: str) -> str:
    """Return the advice to rename a file that looks like a split's, such as ``dev.conllu``, or an empty string."""
    names = ALIASES.get(split, (split,))
    for path in sorted(Path(folder).glob("*")):
        if path.name.endswith(ENDINGS) and any(name in path.name.lower() for name in names):
            ending = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
            return f"; rename {path.name} to {split}{ending}"
    return ""


def aligned_file(folder: str | Path, names: Sequence[str]) -> Path | None:
    """Return the file of these names, plain or gzipped, or None if there is none.

    Raises
    ------
    ValueError
        If there are several.
    """
    return _only(Path(folder, f"{name}{ending}") for name in names for ending in ("", ".gz"))


def symbol_file(folder: str | Path, split: str) -> Path | None:
    """Return a split's file of characters, or None if there is none; errors as in :func:`aligned_file`."""
    return _only(Path(folder, f"{split}{ending}") for ending in SYMBOL_ENDINGS)


def _only(paths: Iterable[Path]) -> Path | None:
    present = [path for path in paths if path.is_file()]
    if len(present) > 1:
        raise ValueError(_both(*present[:2]))
    return present[0] if present else None


def _both(first: Path, second: Path) -> str:
    return f"{first.parent}: has both {first.name} and {second.name}; remove one of them"


def _stem(path: Path) -> str:
    return next(
        path.name.removesuffix(ending)
        for ending in sorted(ENDINGS, key=len, reverse=True)
        if path.name.endswith(ending)
    )
