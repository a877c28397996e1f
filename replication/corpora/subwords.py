"""Words and subwords of parallel text: Moses' tokeniser, and byte pair encoding (Sennrich et al. 2016)."""

import io
from collections.abc import Callable, Iterable
from pathlib import Path

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from replication.files.storage import replacing

#: subword-nmt's mark of a piece that the next one continues.
CONTINUED = "@@ "
#: Words of fairseq's dictionary that are not text.
RESERVED = ("<s>", "<pad>", "</s>", "<unk>")


def learn_codes(lines: Iterable[str], merges: int, path: Path) -> None:
    """Learn ``merges`` merge operations jointly on the tokenised lines of all languages, and write them to ``path``."""
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        learn_bpe(lines, file, merges)


def load_codes(path: Path) -> BPE:
    """Read the merge operations that :func:`learn_codes` wrote.

    Raises
    ------
    ValueError
        If the file was not written by subword-nmt.
    """
    text = path.read_text(encoding="utf-8")
    if not text.startswith("#version"):
        raise ValueError(f"{path}: not codes of subword-nmt, which begin with #version")
    return BPE(io.StringIO(text))


def cut_into_pieces(line: str, codes: BPE) -> str:
    """Cut the words of a tokenised line into subwords.

    Words that fairseq's dictionary reserves are always cut, because they would become its control symbols.

    Raises
    ------
    ValueError
        If a word ends in the mark of subwords: it would be joined with the next word.
    """
    mark = CONTINUED.strip()
    if marked := [word for word in line.split() if word.endswith(mark)]:
        raise ValueError(f"`line` must have no word that ends in {mark}, the mark of subwords, got {marked[0]!r}")
    pieces = codes.process_line(line).split()
    return " ".join(piece[0] + CONTINUED + piece[1:] if piece in RESERVED else piece for piece in pieces)


def join_pieces(line: str) -> str:
    """Join the subwords of a line.

    Examples
    --------
    >>> join_pieces("the bak@@ er")
    'the baker'
    """
    return (line + " ").replace(CONTINUED, "").strip()


def tokenizer(words: str, language: str) -> Callable[[str], str]:
    """Return a function from a line of text to its tokens, separated by spaces.

    Parameters
    ----------
    words : str
        ``"moses"`` for Moses' tokeniser, or ``"spaces"`` for text whose tokens are separated already.
    language : str
        Language code, such as ``"fr"``.
    """
    if words == "spaces":
        return lambda line: " ".join(line.split())
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(language)
    # It makes a set of these two thousand letters for each word with a full stop. From a set, that takes a quarter of the time.
    moses.IsLower = frozenset(moses.IsLower)
    return lambda line: moses.tokenize(line, return_str=True, escape=False)
