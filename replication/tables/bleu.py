"""BLEU of full entmax translators: of the stored run on Multi30k, and of the models that are shipped."""

import json

from replication.paths import ROOT
from replication.reading import read_table
from replication.tables.markers import markdown

PAIRS = ["en-de", "en-fr"]


def multi30k() -> str:
    """BLEU on Multi30k's test set, beside a published transformer of that size."""
    return markdown(["sacreBLEU", *PAIRS], _multi30k())


def bleu() -> str:
    """The same, and that of the shipped translators on the embedded corpus."""
    shipped = {pair: ROOT / "checkpoints" / "translation" / pair / "model" / "made_by.json" for pair in PAIRS}
    measured = [json.loads(path.read_text())["measured"]["bleu.csv"] for path in shipped.values()]
    tests = [next(row for row in rows if row["split"] == "test") for rows in measured]
    size = f"{' and '.join(test['sentences'] for test in tests)} held-out segments, beam {tests[0]['beam']}"
    what = f"embedded corpus, {size}: the demo's [shipped](../checkpoints) models"
    row = [what, *(f"{float(test['bleu']):.1f}" for test in tests)]
    return markdown(["sacreBLEU", *PAIRS], [*_multi30k(), row])


def _multi30k() -> list[list[str]]:
    folder = ROOT / "reported" / "multi30k" / "translation"
    tests = [read_table(folder / pair / "bleu.csv").set_index("split").loc["test"] for pair in PAIRS]
    size = f"{tests[0]['sentences']:,} sentences, beam {tests[0]['beam']}"
    others = read_table(ROOT / "config" / "published" / "multi30k_transformers.csv").to_dict("records")
    return [
        [f"Multi30k, test_2016_flickr, {size}", *(f"{test['bleu']:.1f}" for test in tests)],
        *([f"... {other['model']}, {other['source']}", *(f"{other[pair]:.1f}" for pair in PAIRS)] for other in others),
    ]
