"""How well the translator translates."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import BatchTokens, Beam, Data, References, Split, Translator, Words


def bleu(
    model: Translator,
    data: Data,
    references: References,
    split: Split,
    beam: Beam,
    words: Words,
    output: Annotated[Path, typer.Option(help="table with BLEU and its signature")],
    hypotheses: Annotated[Path, typer.Option(help="text file for the translations")],
    batch_tokens: BatchTokens = 4000,
) -> None:
    """BLEU of the translator itself, on a whole split."""
    import pandas as pd

    from replication.files.storage import replacing, write_table
    from replication.translation.evaluation import score, to_text
    from replication.translation.model import load_translator

    translator = load_translator(model, data)
    expected = references.read_text(encoding="utf-8").splitlines()
    pieces = translator.translate(split, len(expected), beam, batch_tokens)
    text = to_text(pieces, words, translator.task.cfg.target_lang)
    value, signature = score(text, expected)
    with replacing(hypotheses) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    row = {"split": split, "sentences": len(text), "beam": beam, "bleu": value, "signature": signature}
    write_table(output, pd.DataFrame([row]))
