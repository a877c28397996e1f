"""Perplexity of masked language models and n-gram baselines."""

from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.tables.markers import markdown

BASELINES = ["unigram", "interpolated bigram"]
CORPORA = {
    ("brown-512/masked_lm", "held-out"): "Brown, held-out documents, sequences of 512 tokens",
    ("brown-512/masked_lm", "wikitext-2"): "WikiText-2, unseen, the same model",
    ("brown-512-seed1/masked_lm", "held-out"): "Brown, held-out documents, sequences of 512 tokens, a second model",
    ("brown-512-seed1/masked_lm", "wikitext-2"): "WikiText-2, unseen, the second model",
    (
        "brown-512-untied/masked_lm",
        "held-out",
    ): "Brown, held-out documents, 512 tokens, independent query and key weights",
    ("brown-512-untied/masked_lm", "wikitext-2"): "WikiText-2, unseen, independent query and key weights",
    (
        "brown-512-untied-seed1/masked_lm",
        "held-out",
    ): "Brown, held-out documents, 512 tokens, independent weights, a second model",
    ("brown-512-untied-seed1/masked_lm", "wikitext-2"): "WikiText-2, unseen, independent weights, the second model",
    ("brown-seed0/masked_lm", "held-out"): "Brown, held-out documents, 512 tokens, a fine-tuned encoder",
    ("brown-seed0/masked_lm", "wikitext-2"): "WikiText-2, unseen, the fine-tuned encoder",
    ("brown-seed1/masked_lm", "held-out"): "Brown, held-out documents, 512 tokens, a second fine-tuned encoder",
    ("brown-seed1/masked_lm", "wikitext-2"): "WikiText-2, unseen, the second fine-tuned encoder",
    ("brown/masked_lm", "held-out"): "Brown, held-out documents, sequences of 128 tokens",
    ("brown/masked_lm", "wikitext-2"): "WikiText-2, unseen, the same model",
    ("demo", "held-out"): "Berean Standard Bible, held-out books, 512 tokens: the default run, a fine-tuned encoder",
    ("bible-seed1/masked_lm", "held-out"): "Berean Standard Bible, held-out books, 512 tokens, a second encoder",
    ("bible-seed2/masked_lm", "held-out"): "Berean Standard Bible, held-out books, 512 tokens, a third encoder",
}
FOLDERS = tuple(dict.fromkeys(folder for folder, _ in CORPORA))


def perplexity(folders: tuple[str, ...] = FOLDERS) -> str:
    """Return perplexities over the same masked tokens, a row per corpus of the runs."""
    rows = []
    for (folder, corpus), name in CORPORA.items():
        if folder in folders:
            table = read_table(ROOT / "reported" / folder / "perplexity.csv").set_index(["corpus", "model"]).loc[corpus]
            (model,) = (name for name in table.index if name.startswith("entmax "))
            tokens = f"{table.loc[model, 'masked_tokens']:,}"
            rows.append([name, tokens, *(f"{table.loc[row, 'perplexity']:.1f}" for row in [*BASELINES, model])])
    return markdown(["perplexity", "masked tokens", *BASELINES, "entmax transformer"], rows)
