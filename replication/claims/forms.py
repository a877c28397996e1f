"""What the companion papers claim about translation with attention forms; a test gets the folder of all units.

EST is Explicit Sparse Transformer, XST Extremely Sparse Transformer. Sentences are in ``sentences/<pair>``, documents in
``documents/<pair>``. A claim holds if it holds for every language pair; BLEU is that of models trained with their form.
"""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from replication.claims.finding import Finding, Test
from replication.results import as_trained, by_budget, read_cross_attention, read_forms, spread

TESTS: dict[str, Test] = {}

TOP_K, OOW, FULL = "Top-k", "Top-k OOW", "Full"
#: The k that EST recommends.
RECOMMENDED = 8
GLOBAL_FORMS = ["Global", "Random"]
LOCAL_FORMS = ["Block", "Window", "Dilated"]


def _claim(name: str, unit: str) -> Callable[[Callable[[Path], Finding | None]], Callable]:
    """Enter a test of one pair as one of all pairs of a unit; the smallest deciding numbers decide."""

    def register(test: Callable[[Path], Finding | None]) -> Callable:
        def tested(folder: Path) -> Finding | None:
            found = {path.name: test(path) for path in sorted((folder / unit).glob("*-*"))}
            found = {pair: finding for pair, finding in found.items() if finding is not None}
            if not found:
                return None
            per_seed = min(
                (finding.per_seed for finding in found.values()), key=lambda values: sum(values) / len(values)
            )
            numbers = "; ".join(f"{pair}: {finding.numbers}" for pair, finding in found.items())
            return Finding(all(finding.holds for finding in found.values()), per_seed, numbers)

        TESTS[name] = tested
        return test

    return register


def _bleu(rows: pd.DataFrame, form: str, budget: int | None = None) -> pd.Series:
    """BLEU by seed."""
    rows = rows[rows["form"] == form]
    return (rows if budget is None else rows[rows["budget"] == budget]).set_index("seed")["bleu"]


def _against_full(table: pd.DataFrame, top_k: pd.DataFrame) -> Finding | None:
    """Top-k at the recommended k is better than full attention of the same seed, for every seed."""
    full, sparse = _bleu(as_trained(table), FULL), _bleu(top_k, TOP_K, RECOMMENDED)
    gain = (sparse - full).dropna()
    if gain.empty:
        return None
    numbers = f"k = {RECOMMENDED} {spread(sparse[gain.index])}, full {spread(full[gain.index])} BLEU"
    return Finding(bool((gain > 0).all()), gain.tolist(), numbers)


@_claim("est-top-8-beats-full", "sentences")
def _top_8(folder: Path) -> Finding | None:
    table = read_forms(folder)
    return _against_full(table, as_trained(table))


@_claim("est-training-only", "sentences")
def _training_only(folder: Path) -> Finding | None:
    table = read_forms(folder)
    return _against_full(table, table[table["tested_with"] == FULL])


@_claim("est-k-8-is-best", "sentences")
def _best_k(folder: Path) -> Finding | None:
    """No other k is better on average."""
    means = by_budget(read_forms(folder)).drop(columns="full", errors="ignore")
    if TOP_K not in means.index or RECOMMENDED not in means:
        return None
    means = means.loc[TOP_K].dropna()
    others = means.drop(RECOMMENDED)
    if len(others) < 2:  # it is said to rise and then to fall
        return None
    numbers = ", ".join(f"k = {budget}: {bleu:.2f}" for budget, bleu in means.items())
    return Finding(bool(means[RECOMMENDED] >= others.max()), [float(means[RECOMMENDED] - others.max())], numbers)


def _margin(means: pd.DataFrame, leader: str, rivals: list[str]) -> Finding | None:
    """The leader's mean over budgets is above that of every rival."""
    rivals = [form for form in rivals if form in means.index]
    if leader not in means.index or not rivals:
        return None
    mean = means.drop(columns="full", errors="ignore").loc[[leader, *rivals]].dropna(axis=1).mean(axis=1)
    best = mean[rivals].idxmax()
    numbers = f"{leader} {mean[leader]:.2f}, best of the others {best} {mean[best]:.2f} BLEU over all k"
    return Finding(bool(mean[leader] > mean[best]), [float(mean[leader] - mean[best])], numbers)


@_claim("xst-top-k-leads", "sentences")
def _leads(folder: Path) -> Finding | None:
    return _margin(by_budget(read_forms(folder)), TOP_K, [*LOCAL_FORMS, *GLOBAL_FORMS])


@_claim("xst-top-k-survives-small-k", "sentences")
def _small_k(folder: Path) -> Finding | None:
    """At the smallest k, Top-k is the nearest to full attention."""
    means = by_budget(read_forms(folder))
    if FULL not in means.index or TOP_K not in means.index:
        return None
    full, sparse = means.loc[FULL, "full"], means.drop(columns="full").drop(index=FULL).dropna(axis=1)
    if sparse.empty or len(sparse) < 2:
        return None
    smallest = min(sparse.columns)
    lost = full - sparse[smallest]
    others = lost.drop(TOP_K)
    numbers = f"BLEU lost at k = {smallest}: " + ", ".join(f"{form} {less:.2f}" for form, less in lost.items())
    return Finding(bool((others > lost[TOP_K]).all()), [float(others.min() - lost[TOP_K])], numbers)


def _global_forms_fail(folder: Path, better: list[str]) -> Finding | None:
    """On average over the budgets of all of them, the worst of some forms is better than Global and Random."""
    means = by_budget(read_forms(folder)).drop(columns="full", errors="ignore")
    better, predefined = ([form for form in forms if form in means.index] for forms in (better, GLOBAL_FORMS))
    if not better or not predefined:
        return None
    mean = means.loc[[*better, *predefined]].dropna(axis=1).mean(axis=1)
    margin = mean[better].min() - mean[predefined].max()
    numbers = ", ".join(f"{form} {bleu:.2f}" for form, bleu in mean.items())
    return Finding(bool(margin > 0), [float(margin)], f"{numbers} BLEU over all k")


@_claim("xst-global-forms-fail", "sentences")
def _sentences_local(folder: Path) -> Finding | None:
    return _global_forms_fail(folder, [TOP_K])


@_claim("xst-documents-local-beats-global", "documents")
def _documents_local(folder: Path) -> Finding | None:
    return _global_forms_fail(folder, LOCAL_FORMS)


@_claim("xst-documents-oow-leads", "documents")
def _oow(folder: Path) -> Finding | None:
    return _margin(by_budget(read_forms(folder)), OOW, [*LOCAL_FORMS, *GLOBAL_FORMS, "BigBird"])


@_claim("xst-documents-full-is-worse", "documents")
def _full(folder: Path) -> Finding | None:
    """Full attention is worse than Top-k OOW at its worst k."""
    means = by_budget(read_forms(folder))
    if FULL not in means.index or OOW not in means.index:
        return None
    full, worst = means.loc[FULL, "full"], means.loc[OOW].drop("full").min()
    return Finding(bool(worst > full), [float(worst - full)], f"{OOW} at least {worst:.2f}, full {full:.2f} BLEU")


def _layers(folder: Path) -> pd.DataFrame | None:
    """Cross-attention of full attention and of Top-k at the recommended k: columns (measure, form), by layer and seed."""
    table = read_cross_attention(folder)
    table = table[(table["form"] == FULL) | ((table["form"] == TOP_K) & (table["budget"] == RECOMMENDED))]
    wide = table.pivot(index=["layer", "seed"], columns="form").drop(columns="budget")
    return wide.dropna(how="all", axis=1).dropna() if {FULL, TOP_K} <= set(table["form"]) else None


def _compared(folder: Path, measure: str, layer: Callable, sign: int, what: str) -> Finding | None:
    wide = _layers(folder)
    if wide is None or measure not in wide or wide.empty:
        return None
    rows = wide.xs(layer(wide.index.get_level_values("layer")), level="layer")[measure]
    gain = sign * (rows[TOP_K] - rows[FULL])
    numbers = f"{what}: k = {RECOMMENDED} {spread(rows[TOP_K])}, full {spread(rows[FULL])}"
    return Finding(bool((gain > 0).all()), gain.tolist(), numbers)


@_claim("est-bottom-layer-concentrates", "sentences")
def _bottom(folder: Path) -> Finding | None:
    return _compared(folder, "entropy", min, -1, "entropy of the bottom layer in bits")


@_claim("est-top-layer-off-the-end", "sentences")
def _top(folder: Path) -> Finding | None:
    return _compared(folder, "on_the_end", max, -1, "weight on the last source token in the top layer")


@_claim("est-top-layer-aligns", "sentences")
def _aligned(folder: Path) -> Finding | None:
    return _compared(folder, "aligned_words", max, 1, "words aligned by the top layer")
