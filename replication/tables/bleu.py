"""BLEU of translators in stored runs, without predicted graphs."""

from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.tables.markers import markdown

PAIRS = ["en-de", "en-fr"]


def multi30k() -> str:
    """Return BLEU on Multi30k's test set, with published transformers of that size."""
    return markdown(["sacreBLEU", *PAIRS], _multi30k())


def darby() -> str:
    """Return BLEU on Darby's test verses."""
    return markdown(["sacreBLEU", *PAIRS], _darby())


def bleu() -> str:
    """Return BLEU on both texts."""
    return markdown(["sacreBLEU", *PAIRS], [*_darby(), *_multi30k()])


def demo() -> str:
    """Return BLEU of the default run's translators on held-out books of the Bible."""
    rows = []
    for path in sorted(ROOT.glob("reported/demo/translation/*/bleu.csv")):
        test = read_table(path).set_index("split").loc["test"]
        rows.append([path.parts[-2], str(test["sentences"]), str(test["beam"]), f"{test['bleu']:.1f}"])
    return markdown(["pair", "held-out verses", "beam", "sacreBLEU"], rows)


def _darby() -> list[list[str]]:
    return [
        _row(("darby", "darby-en-de"), "Darby's Bible, held-out chapters"),
        _row(("darby-near-gold",), "... another seed, 2,600 updates in place of 4,200"),
        _row(("darby-budgets",), "... a third seed, 2,600 updates"),
        _row(("darby-softmax",), "... softmax in place of 1.5-entmax"),
    ]


def _multi30k() -> list[list[str]]:
    others = read_table(ROOT / "config" / "published" / "multi30k_transformers.csv").to_dict("records")
    return [
        _row(("multi30k",), "Multi30k, test_2016_flickr"),
        *([f"... {other['model']}, {other['source']}", *(f"{other[pair]:.1f}" for pair in PAIRS)] for other in others),
    ]


def _row(runs: tuple[str, ...], text: str) -> list[str]:
    """Return the test set's description, and each pair's BLEU from the run that has the pair, or nothing."""
    paths = [ROOT / "reported" / run / "translation" / pair / "bleu.csv" for pair in PAIRS for run in runs]
    tests = {path.parts[-2]: read_table(path).set_index("split").loc["test"] for path in paths if path.exists()}
    sentences, beam = next(iter(tests.values()))[["sentences", "beam"]]
    what = f"{text}, {sentences:,} sentences, beam {beam}"
    return [what, *(f"{tests[pair]['bleu']:.1f}" if pair in tests else "" for pair in PAIRS)]
