"""The n-grams that a model of characters must beat."""

from replication.stages.options import Output, Text


def character_baselines(text: Text, output: Output) -> None:
    """Bits per character of unigrams and bigrams, learned on the training text, on the test text."""
    import pandas as pd

    from replication.char_lm.data import Alphabet
    from replication.char_lm.evaluation import baselines
    from replication.files.storage import write_table

    train, test = ((text / f"{split}.txt").read_bytes() for split in ("train", "test"))
    alphabet = Alphabet.of(train)
    bits = baselines(alphabet.encode(train), alphabet.encode(test), len(alphabet))
    rows = [{"model": name, "bits_per_character": value, "characters": len(test) - 1} for name, value in bits.items()]
    write_table(output, pd.DataFrame(rows))
