"""Conversion of parallel text to fairseq's binary format, with joint subwords and one dictionary for both languages."""

import shutil
import tempfile
from itertools import chain
from pathlib import Path

from subword_nmt.apply_bpe import BPE

from replication.corpora.parallel import read_parallel, write_parallel
from replication.corpora.subwords import cut_into_pieces, learn_codes, load_codes, tokenizer
from replication.files.manifest import add_output
from replication.translation.fairseq import commands

CODES = "codes.bpe"


def binarize(
    corpus: Path, source: str, target: str, splits: list[str], words: str, merges: int, output: Path, like: Path | None
) -> None:
    """Write ``codes.bpe``, ``pieces/<split>.<language>`` and fairseq's dictionaries and binary data to ``output``.

    Parameters
    ----------
    corpus : Path
        Folder with ``<split>.<language>``.
    source, target : str
        Language codes.
    splits : list of str
        Splits of the corpus.
    words : str
        Tokeniser, ``"moses"`` or ``"spaces"``.
    merges : int
        Merge operations of the joint byte pair encoding.
    output : Path
        Folder to write to.
    like : Path, optional
        Another ``output``, whose codes and dictionary are reused so that a model can move from one corpus to the other.
    """
    languages = (source, target)
    text = {split: read_parallel(corpus, split, languages) for split in splits}
    tokenize = {language: tokenizer(words, language) for language in languages}
    tokens = {
        split: {language: [tokenize[language](line) for line in sides[language]] for language in languages}
        for split, sides in text.items()
    }
    output.mkdir(parents=True, exist_ok=True)
    if like is None:
        learn_codes(chain.from_iterable(tokens["train"].values()), merges, output / CODES)
    else:
        shutil.copyfile(like / CODES, output / CODES)
    codes = load_codes(output / CODES)
    for split, sides in tokens.items():
        pieces = {language: _pieces(corpus / f"{split}.{language}", lines, codes) for language, lines in sides.items()}
        write_parallel(output / "pieces", split, pieces)
    _preprocess(output, source, target, splits, like)
    # The stage writes pieces/; fairseq writes the rest.
    for path in sorted(output.iterdir()):
        if path.is_file() and not path.name.startswith("."):
            add_output(path)


def _pieces(path: Path, lines: list[str], codes: BPE) -> list[str]:
    pieces = []
    for number, line in enumerate(lines, start=1):
        try:
            pieces.append(cut_into_pieces(line, codes))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    return pieces


def _preprocess(output: Path, source: str, target: str, splits: list[str], like: Path | None) -> None:
    flags = {"train": "--trainpref", "valid": "--validpref", "test": "--testpref"}
    with tempfile.TemporaryDirectory(dir=output) as folder:
        arguments = ["--source-lang", source, "--target-lang", target, "--destdir", folder, "--joined-dictionary"]
        for split in splits:
            arguments += [flags[split], str(output / "pieces" / split)]
        if like is not None:
            arguments += ["--srcdict", str(like / f"dict.{source}.txt")]
        commands.preprocess(arguments)
        for path in sorted(Path(folder).iterdir()):
            path.replace(output / path.name)
