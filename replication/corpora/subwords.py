"""Words and subwords of parallel text: Moses' tokeniser, and byte pair encoding as Sennrich et al. (2016) published it."""

import io
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from replication.files.storage import replacing

#: What subword-nmt appends to a piece that the next one continues.
CONTINUED = "@@ "
#: An apostrophe as it is printed, which Moses sets apart and leaves so: French elides before any word, others contract some.
APOSTROPHE = dict.fromkeys(("fr", "it"), re.compile(r"(?<=\w) ’ (?=\w)"))
CONTRACTED = re.compile(r"(?<=\w) ’ (?=(?:s|t|d|m|re|ve|ll)\b)")


def learn_codes(lines: Iterable[str], merges: int, path: Path) -> None:
    """Learn ``merges`` merge operations, jointly on the tokenised lines of all languages, and write them to ``path``."""
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        learn_bpe(lines, file, merges)


def load_codes(path: Path) -> BPE:
    """What :func:`learn_codes` wrote.

    Raises
    ------
    ValueError
        If the file is not one of subword-nmt's.
    """
    text = path.read_text(encoding="utf-8")
    if not text.startswith("#version"):
        raise ValueError(f"{path}: not the codes of subword-nmt")
    return BPE(io.StringIO(text))


def join_pieces(line: str) -> str:
    """``"bak@@ er"`` -> ``"baker"``."""
    return (line + " ").replace(CONTINUED, "").strip()


def tokenizer(words: str, language: str) -> Callable[[str], str]:
    """From a line of text to words with a space between them. ``words``: ``"moses"``, or ``"spaces"`` if they have one."""
    if words == "spaces":
        return lambda line: " ".join(line.split())
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(language)
    return lambda line: moses.tokenize(line, return_str=True, escape=False)


def detokenizer(words: str, language: str) -> Callable[[str], str]:
    """The inverse of :func:`tokenizer`, as far as there is one."""
    if words == "spaces":
        return lambda line: line
    from sacremoses import MosesDetokenizer

    moses, apostrophe = MosesDetokenizer(language), APOSTROPHE.get(language, CONTRACTED)
    return lambda line: apostrophe.sub("’", moses.detokenize(line.split(), unescape=False))
