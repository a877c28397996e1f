"""BLEU of full entmax translators: stored runs on real text, and shipped models."""

import json

from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.tables.markers import markdown

PAIRS = ["en-de", "en-fr"]


def multi30k() -> str:
    """Return BLEU on Multi30k's test set, with published transformers of that size."""
    return markdown(["sacreBLEU", *PAIRS], _multi30k())


def darby() -> str:
    """Return BLEU on Darby's test verses."""
    return markdown(["sacreBLEU", *PAIRS], [_darby()])


def bleu() -> str:
    """Return BLEU on both texts, and of the shipped translators on the embedded corpus."""
    shipped = {pair: ROOT / "checkpoints" / "translation" / pair / "model" / "made_by.json" for pair in PAIRS}
    measured = [json.loads(path.read_text())["measured"]["bleu.csv"] for path in shipped.values()]
    tests = [next(row for row in rows if row["split"] == "test") for rows in measured]
    size = f"{' and '.join(test['sentences'] for test in tests)} held-out segments, beam {tests[0]['beam']}"
    what = f"embedded corpus, {size}: the demo's [shipped](../checkpoints) models"
    row = [what, *(f"{float(test['bleu']):.1f}" for test in tests)]
    return markdown(["sacreBLEU", *PAIRS], [_darby(), *_multi30k(), row])


def _darby() -> list[str]:
    return _row(("darby", "darby-en-de"), "Darby's Bible, held-out chapters")


def _multi30k() -> list[list[str]]:
    others = read_table(ROOT / "config" / "published" / "multi30k_transformers.csv").to_dict("records")
    return [
        _row(("multi30k",), "Multi30k, test_2016_flickr"),
        *([f"... {other['model']}, {other['source']}", *(f"{other[pair]:.1f}" for pair in PAIRS)] for other in others),
    ]


def _row(runs: tuple[str, ...], text: str) -> list[str]:
    """Return the test set's description, and each pair's BLEU from the run that has the pair."""
    folders = [ROOT / "reported" / run / "translation" for run in runs]
    paths = [next(folder / pair / "bleu.csv" for folder in folders if (folder / pair).is_dir()) for pair in PAIRS]
    tests = [read_table(path).set_index("split").loc["test"] for path in paths]
    what = f"{text}, {tests[0]['sentences']:,} sentences, beam {tests[0]['beam']}"
    return [what, *(f"{test['bleu']:.1f}" for test in tests)]
