"""Whether translators of documents know the pronouns that the sentences before decide."""

from pathlib import Path
from typing import Annotated

import typer

from replication.stages.options import BatchTokens, Corpus, Data, Source, Splits, Target, Words, json_object

TEST = "test"


def measure_pronouns(
    data: Data,
    source: Corpus,
    split: Splits,
    from_language: Source,
    to_language: Target,
    block_words: Annotated[int, typer.Option(help="as for parallel-corpus")],
    words: Words,
    cell: Annotated[list[dict], typer.Option(parser=json_object, help="as for train-forms, repeated for every model")],
    output: Annotated[Path, typer.Option(help="folder of train-forms; the measures go into those of the models")],
    contrasts: Annotated[int, typer.Option(help="sentences of the test set per pronoun, at most")] = 100,
    batch_tokens: BatchTokens = 4000,
) -> None:
    """Measure by contrast how often translators into English know he, she or it, with context and without.

    Splits are named as for parallel-corpus, all of them: together they decide which sentences the test set gets.
    """
    from replication.corpora.sources import read_block_sentences
    from replication.corpora.subwords import load_codes, tokenizer
    from replication.files.storage import write_table
    from replication.translation.data import CODES
    from replication.translation.model import load_translator
    from replication.translation.pronouns import contrasts_of, first_of_each, measure

    if to_language != "en":
        raise ValueError(f"--to: the pronouns are those of en, not of {to_language}")
    if TEST not in split:
        raise ValueError(f"--split: {TEST} is what is measured on, and not among {', '.join(split)}")
    languages = [from_language, to_language]
    blocks = read_block_sentences(source, split, languages, block_words)[TEST]
    tokenize = {language: tokenizer(words, language) for language in languages}
    sides = [[[tokenize[language](line) for line in block] for block in blocks[language]] for language in languages]
    asked, codes = first_of_each(contrasts_of(*sides), contrasts), load_codes(data / CODES)
    for one in cell:
        folder, own = output / one["name"], {key: one[key] for key in ("form", "budget", "seed")}
        translator = load_translator(folder / "model.safetensors", data)
        write_table(folder / "pronouns.csv", measure(translator, asked, codes, batch_tokens).assign(**own), ["budget"])
