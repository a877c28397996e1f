"""Conversion of parallel text to fairseq's binary format, with joint subwords and one dictionary for both languages."""

import json
import shutil
import tempfile
from itertools import chain
from pathlib import Path

from subword_nmt.apply_bpe import BPE

from replication.corpora.parallel import read_parallel, write_parallel
from replication.corpora.spacing import Spacing, fit_tokenizer
from replication.corpora.subwords import cut_into_pieces, learn_codes, load_codes, tokenizer
from replication.files.manifest import add_output
from replication.files.storage import write_json
from replication.translation.fairseq import commands

CODES = "codes.bpe"
#: Spaces between the tokens of each language, as :func:`~replication.corpora.spacing.fit_tokenizer` returns them.
SPACING = "spacing.json"


def binarize(
    corpus: Path, source: str, target: str, splits: list[str], words: str, merges: int, output: Path, like: Path | None
) -> None:
    """Write ``codes.bpe``, ``spacing.json``, ``pieces/<split>.<language>`` and fairseq's dictionaries and binary data.

    Parameters
    ----------
    corpus : Path
        Folder with ``<split>.<language>``.
    source, target : str
        Language codes.
    splits : list of str
        Splits of the corpus.
    words : str
        Tokeniser, ``"moses"`` or ``"spaces"``; Moses' gives way to spaces where it loses words of the training text.
    merges : int
        Merge operations of the joint byte pair encoding.
    output : Path
        Folder to write to.
    like : Path, optional
        Another ``output``, whose tokenisers, codes and dictionary are reused so that a model can move from one corpus to
        the other.
    """
    languages = (source, target)
    text = {split: read_parallel(corpus, split, languages) for split in splits}
    output.mkdir(parents=True, exist_ok=True)
    if like is None:
        fitted = {language: fit_tokenizer(words, language, text["train"][language]) for language in languages}
        tokenize = {language: function for language, (function, _) in fitted.items()}
        spacing = {language: learned for language, (_, learned) in fitted.items()}
    else:
        spacing = read_spacing(like)
        tokenize = {lang: tokenizer("spaces" if spacing[lang] is None else words, lang) for lang in languages}
    write_json(output / SPACING, spacing)
    tokens = {
        split: {language: [tokenize[language](line) for line in sides[language]] for language in languages}
        for split, sides in text.items()
    }
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


def read_spacing(data: Path) -> dict[str, Spacing | None]:
    """Return the spaces between tokens of a folder of :func:`binarize`, by language."""
    return json.loads((data / SPACING).read_text(encoding="utf-8"))


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
