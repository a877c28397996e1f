"""A language pair that a tiny translator learns in seconds: words translated one by one."""

import random
from pathlib import Path

from replication.corpora.parallel import write_parallel
from replication.translation.data import binarize

ARCHITECTURE = {
    f"{side}_{key}": value
    for side in ("encoder", "decoder")
    for key, value in {"layers": 1, "embed_dim": 32, "ffn_embed_dim": 32, "attention_heads": 2}.items()
}
TRAINING = {"lr": 0.01, "warmup_updates": 5, "max_tokens": 600, "dropout": 0.0, "log_interval": 5}
DICTIONARY = dict(
    zip("alpha beta gamma delta epsilon zeta".split(), "eins zwei drei vier fünf sechs".split(), strict=True)
)


def write_corpus(folder: Path) -> None:
    """Write text and binarized data in a folder."""
    rng = random.Random(0)
    for split, count in {"train": 400, "valid": 20, "test": 20}.items():
        source = [rng.choices(list(DICTIONARY), k=rng.randint(2, 9)) for _ in range(count)]
        text = {"en": [" ".join(s) for s in source], "de": [" ".join(DICTIONARY[w] for w in s) for s in source]}
        write_parallel(folder / "corpus", split, text)
    binarize(folder / "corpus", "en", "de", ["train", "valid", "test"], "spaces", 40, folder / "data", None)
