"""The companion papers' claims about translation with attention forms; tests get the folder of a unit's language pairs.

EST is Explicit Sparse Transformer, XST is Extremely Sparse Transformer. A claim holds if it holds for every language pair. BLEU
is measured with the form that a model was trained with, unless stated otherwise.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from replication.claims.finding import Effect, Finding, Test, in_every
from replication.claims.scores import Units, bleu, effect, over_seeds
from replication.files.reading import read_table
from replication.files.verification import listed_files
from replication.results.bleu import COUNTS
from replication.results.measurements import read_cross_attention, read_forms

SENTENCES: dict[str, Test] = {}
DOCUMENTS: dict[str, Test] = {}
_claim, _document_claim = in_every(SENTENCES, "*-*"), in_every(DOCUMENTS, "*-*")

TOP_K, OOW, FULL, WINDOW = "Top-k", "Top-k OOW", "Full", "Window"
#: Top-k with full cross-attention, and Top-k OOW with restricted cross-attention.
TOP_K_SELF, OOW_CROSS = "Top-k self", "Top-k OOW cross"
#: The k that EST recommends.
RECOMMENDED = 8
GLOBAL_FORMS = ["Global", "Random"]
LOCAL_FORMS = ["Block", "Window", "Dilated"]


@dataclass(frozen=True)
class Cells:
    """Translators of one language pair, and their BLEU by form, budget (0 for Full) and seed.

    Attributes
    ----------
    folder : Path
        Folder of the language pair.
    tested_with_full : bool
        Use BLEU under full attention instead of the form that a model was trained with.
    """

    folder: Path
    tested_with_full: bool = False

    @cached_property
    def table(self) -> pd.DataFrame:
        """BLEU by form, budget and seed."""
        return self._tested(read_forms(self.folder)).set_index(["form", "budget", "seed"]).sort_index()

    @cached_property
    def sentences(self) -> pd.DataFrame | None:
        """BLEU counts of each sentence, if they were stored."""
        paths = listed_files(self.folder, "*_seed*/sentences.parquet")
        if not paths:
            return None
        table = self._tested(pd.concat([read_table(path) for path in paths]))
        return table.set_index(["form", "budget", "seed", "sentence"]).sort_index()

    def _tested(self, table: pd.DataFrame) -> pd.DataFrame:
        tested = FULL if self.tested_with_full else table["form"]
        table = table[(table["tested_with"] == tested) | (table["form"] == FULL)]
        return table.assign(budget=table["budget"].fillna(0).astype(int))

    @property
    def units(self) -> Units | None:
        """Resampled units: the sentences, if their counts were stored."""
        counts = self.sentences
        return None if counts is None else Units(counts.index.get_level_values("sentence").nunique(), "sentences")

    def budgets(self, *forms: str) -> list[int]:
        """Return the budgets that all of these forms were trained with, in increasing order; none if a form is missing."""
        by_form = [set(self.table.loc[[form]].index.get_level_values("budget")) for form in forms if form in self]
        return sorted(set.intersection(*by_form)) if len(by_form) == len(forms) else []

    def __contains__(self, form: str) -> bool:
        return form in self.table.index.get_level_values("form")

    def seeds(self, form: str, budgets: Iterable[int]) -> set[int]:
        """Return the seeds that a form has at all of the budgets."""
        return set.intersection(*(set(self.table.loc[(form, budget)].index) for budget in budgets))

    def score(self, form: str, budgets: list[int], seeds: list[int]) -> np.ndarray:
        """Return mean BLEU over budgets, ``[1 + R, seeds]``."""
        return np.stack([np.mean([self._bleu(form, b, seed) for b in budgets], axis=0) for seed in seeds], axis=1)

    def _bleu(self, form: str, budget: int, seed: int) -> np.ndarray:
        if self.sentences is None:
            return np.array([self.table.loc[(form, budget, seed), "bleu"]])
        return bleu(self.sentences.loc[(form, budget, seed), COUNTS].to_numpy())

    def gain(self, form: str, budgets: list[int], over: str, of_over: list[int]) -> list[Effect]:
        """Return the mean BLEU gain of ``form`` over ``over``, paired by seed; an empty list without common seeds."""
        seeds = sorted(self.seeds(form, budgets) & self.seeds(over, of_over))
        if not seeds:
            return []
        difference = self.score(form, budgets, seeds) - self.score(over, of_over, seeds)
        values = ", ".join(map(str, budgets))
        return [effect(f"{form} - {over} at k = {values}", difference, "model", self.units)]


def _against_each(cells: Cells, leaders: dict[str, str], smallest: bool = False) -> Finding:
    """Compare each rival to its leader, averaged over their common budgets or at the smallest of them."""
    effects, missing = [], []
    for rival, leader in leaders.items():
        budgets = cells.budgets(leader, rival)[: 1 if smallest else None]
        gains = cells.gain(leader, budgets, rival, budgets) if budgets else []
        effects += gains
        if not gains:
            missing.append(f"{leader} and {rival} share no {'seed' if budgets else 'k'}")
    return Finding(effects, missing=missing)


def _top_k_fairly(cells: Cells, *rivals: str) -> dict[str, str]:
    """Return the fair Top-k variant for each rival.

    Forms with full cross-attention are compared to Top-k in self-attention only, if it was trained.
    """
    alike = TOP_K_SELF if TOP_K_SELF in cells else TOP_K
    return {rival: TOP_K if rival == "Random" else alike for rival in rivals}


def _against_full(cells: Cells) -> Finding | None:
    """Compare Top-k at the recommended k to full attention, paired by seed."""
    if FULL not in cells or RECOMMENDED not in cells.budgets(TOP_K):
        return None
    return Finding(cells.gain(TOP_K, [RECOMMENDED], FULL, [0]))


@_claim("est-top-8-beats-full")
def est_top_8_beats_full(folder: Path) -> Finding | None:
    return _against_full(Cells(folder))


@_claim("est-training-only")
def est_training_only(folder: Path) -> Finding | None:
    return _against_full(Cells(folder, tested_with_full=True))


@_claim("est-k-8-is-best")
def est_k_8_is_best(folder: Path) -> Finding | None:
    """Compare the recommended k to the smallest and the largest k, and to full attention."""
    cells = Cells(folder)
    budgets = cells.budgets(TOP_K)
    if RECOMMENDED not in budgets or not budgets[0] < RECOMMENDED < budgets[-1] or FULL not in cells:
        return None
    rivals = [(TOP_K, budgets[0]), (TOP_K, budgets[-1]), (FULL, 0)]
    gains = [(rival, e) for rival in rivals for e in cells.gain(TOP_K, [RECOMMENDED], rival[0], [rival[1]])]
    return Finding([replace(e, what=f"k = 8 - {f'k = {k}' if k else 'full'}") for (_, k), e in gains])


@_claim("xst-top-k-leads")
def xst_top_k_leads(folder: Path) -> Finding:
    cells = Cells(folder)
    return _against_each(cells, _top_k_fairly(cells, *LOCAL_FORMS, *GLOBAL_FORMS))


@_claim("xst-top-k-survives-small-k")
def xst_top_k_survives_small_k(folder: Path) -> Finding:
    cells = Cells(folder)
    return _against_each(cells, _top_k_fairly(cells, *LOCAL_FORMS, *GLOBAL_FORMS), smallest=True)


@_claim("xst-global-forms-fail")
def xst_global_forms_fail(folder: Path) -> Finding:
    cells = Cells(folder)
    return _against_each(cells, _top_k_fairly(cells, *GLOBAL_FORMS))


@_document_claim("xst-documents-local-beats-global")
def xst_documents_local_beats_global(folder: Path) -> Finding:
    cells = Cells(folder)
    findings = [_against_each(cells, dict.fromkeys(GLOBAL_FORMS, local)) for local in LOCAL_FORMS]
    missing = [words for finding in findings for words in finding.missing]
    return Finding([e for finding in findings for e in finding.effects], missing=missing)


@_document_claim("xst-documents-oow-leads")
def xst_documents_oow_leads(folder: Path) -> Finding:
    return _against_each(Cells(folder), dict.fromkeys([*LOCAL_FORMS, *GLOBAL_FORMS, "BigBird"], OOW))


@_document_claim("xst-documents-top-k-in-cross-attention")
def xst_documents_top_k_in_cross_attention(folder: Path) -> Finding | None:
    """Compare at the largest common k, where sparsity is lowest."""
    cells = Cells(folder)
    return Finding([e for k in cells.budgets(OOW_CROSS, OOW)[-1:] for e in cells.gain(OOW_CROSS, [k], OOW, [k])])


@_document_claim("xst-documents-bigbird-below-window")
def xst_documents_bigbird_below_window(folder: Path) -> Finding:
    return _against_each(Cells(folder), {"BigBird": WINDOW})


@_document_claim("xst-documents-dilated-below-window")
def xst_documents_dilated_below_window(folder: Path) -> Finding:
    return _against_each(Cells(folder), {"Dilated": WINDOW})


@_document_claim("xst-documents-full-is-worse")
def xst_documents_full_is_worse(folder: Path) -> Finding | None:
    """Compare Top-k out of window at every k to full attention."""
    cells = Cells(folder)
    if FULL not in cells:
        return None
    return Finding([e for budget in cells.budgets(OOW) for e in cells.gain(OOW, [budget], FULL, [0])])


def _layers(folder: Path) -> pd.DataFrame | None:
    """Return the cross-attention of Full and of Top-k at the recommended k: columns (measure, form), by layer and seed."""
    table = read_cross_attention(folder)
    table = table[(table["form"] == FULL) | ((table["form"] == TOP_K) & (table["budget"] == RECOMMENDED))]
    if not {FULL, TOP_K} <= set(table["form"]):
        return None
    return (
        table.pivot(index=["layer", "seed"], columns="form").drop(columns="budget").dropna(how="all", axis=1).dropna()
    )


def _compared(folder: Path, measure: str, layer: Callable, sign: int, what: str) -> Finding | None:
    wide = _layers(folder)
    if wide is None or measure not in wide or wide.empty:
        return None
    rows = wide.xs(layer(wide.index.get_level_values("layer")), level="layer")[measure]
    words = f"{what}: k = {RECOMMENDED} {rows[TOP_K].mean():.3f}, full {rows[FULL].mean():.3f}"
    return Finding([over_seeds(words, sign * (rows[TOP_K] - rows[FULL]), "model")])


@_claim("est-bottom-layer-concentrates")
def est_bottom_layer_concentrates(folder: Path) -> Finding | None:
    """Use the entropy of the eight largest weights, so that Top-k gains nothing from having only eight."""
    return _compared(folder, "entropy_of_8", min, -1, "bits of the eight largest weights in the bottom layer")


@_claim("est-top-layer-off-the-end")
def est_top_layer_off_the_end(folder: Path) -> Finding | None:
    return _compared(folder, "on_the_end", max, -1, "weight on the last source token in the top layer")


@_claim("est-top-layer-aligns")
def est_top_layer_aligns(folder: Path) -> Finding | None:
    return _compared(folder, "aligned_words", max, 1, "words aligned by the top layer")
