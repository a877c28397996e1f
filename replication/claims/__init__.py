"""Claim ledger: the papers' claims, tested on the workflow's measurements.

``config/published/claims.csv`` lists the claims. Each has a test with the same id in the module of its task.
"""

from pathlib import Path

import pandas as pd

from replication.claims import (
    blocks,
    captioning,
    char_lm,
    factorised,
    forms,
    masked_lm,
    normalizer_speed,
    patterns,
    premises,
    retrofit,
    translation,
)
from replication.claims.band import Band
from replication.claims.change import changing
from replication.claims.curves import in_words
from replication.claims.finding import FAILS, NOT_COMPARABLE, UNKNOWN, UNTESTED, VERDICTS, Effect, Finding, Rule, Test
from replication.claims.stated import check_claims
from replication.files.reading import digest, noting

__all__ = ["TESTS", "VERDICTS", "Effect", "Finding", "Rule", "ledger"]

#: Tests of each task's claims, by the task's folder below the results.
TASKS: dict[str, dict[str, Test]] = {
    "masked_lm": masked_lm.TESTS | blocks.TESTS,
    "translation": translation.TESTS,
    "char_lm": char_lm.TESTS,
    "forms/sentences": forms.SENTENCES,
    "forms/documents": forms.DOCUMENTS,
    "normalizer_speed": normalizer_speed.TESTS,
    "factorised": factorised.TESTS,
    "patterns/images": patterns.IMAGES,
    "patterns/text": patterns.TEXT,
    "captioning": captioning.TESTS,
    "retrofit": retrofit.TESTS,
}
TESTS: dict[str, Test] = {name: test for tests in TASKS.values() for name, test in tests.items()}


def ledger(claims: pd.DataFrame, results: Path, printed: bool = False) -> pd.DataFrame:
    """Test every claim on the results in a folder.

    Parameters
    ----------
    claims : DataFrame
        ``config/published/claims.csv``.
    results : Path
        Folder with a folder per task, and the run's ``config.yaml``. Claims about missing measurements are untested.
    printed : bool
        Treat single-model numbers as exact, for numbers printed in a paper.

    Returns
    -------
    DataFrame
        A row per claim: ``id, paper, section, statement, kind``; ``criterion``, ``band`` and ``premise`` (with the measured
        value); ``verdict``, one of :data:`VERDICTS`; ``effect`` and 95 % ``interval`` of the deciding comparison; ``where``,
        the sparsities compared; ``n``, the population and what the interval varies over; ``data``, ``real`` or ``generated``;
        ``numbers``, all comparisons in words; ``change``, what would change the verdict; and ``inputs``, a hash of the files
        that were read.

    Raises
    ------
    ValueError
        If a claim has no test, or a test has no claim, or a claim is stated twice or without a finite threshold.
    """
    check_claims(claims)
    if set(claims["id"]) != set(TESTS):
        unmatched = sorted(set(claims["id"]) ^ set(TESTS))
        raise ValueError(
            f"`claims` must have exactly the ids of the tests, got a claim or test without the other: {unmatched}"
        )
    stated = claims.fillna({"unit": "", "premise": "", "band": ""}).to_dict("records")
    return pd.DataFrame([judge(claim, results, printed) for claim in stated])


def judge(claim: dict[str, object], results: Path, printed: bool = False) -> dict[str, object]:
    """Return the row of one claim in the :func:`ledger`."""
    (task,) = (task for task, tests in TASKS.items() if claim["id"] in tests)
    criterion = f"{claim['effect']} {claim['relation']} {claim['threshold']:g} {claim['unit']}"
    with noting() as read:
        judged = _judged(claim, task, results, printed)
    stated = {key: claim[key] for key in ("id", "paper", "section", "statement", "kind")}
    stated |= {"criterion": criterion.strip(), "band": claim["band"]}
    return stated | judged | {"inputs": digest(read, results)}


def _judged(claim: dict[str, object], task: str, results: Path, printed: bool) -> dict[str, object]:
    blank = {"premise": claim["premise"], "verdict": UNTESTED, "effect": None, "interval": "", "where": "", "n": ""}
    blank |= {"data": "", "numbers": "not measured here", "change": ""}
    folder = results / task
    if not folder.is_dir():
        return blank
    band = [Band.parse(claim["band"])] if claim["band"] else []
    try:
        finding = TESTS[claim["id"]](folder, *band)
    except FileNotFoundError:
        finding = None
    if finding is None:
        return blank
    finding = finding.of_numbers().as_printed() if printed else finding.of_numbers()
    rule = Rule(claim["relation"], claim["threshold"])
    verdict, deciding = rule.of_all(finding.effects) if finding.effects else (UNTESTED, None)
    if deciding is None or (finding.missing and verdict != FAILS):
        words = [*finding.missing, *(f"{effect.what}: {in_words(effect)}" for effect in finding.effects)]
        words = "; ".join([*words, *finding.notes])
        change = "; ".join(finding.missing)
        return blank | {"numbers": words, "change": change, "data": premises.data(task, folder)} if words else blank
    met, premise = premises.judge(claim["premise"], task, folder)
    return {
        "premise": premise,
        "verdict": verdict if met else NOT_COMPARABLE,
        "effect": float(f"{deciding.value:.6g}"),
        "interval": "" if deciding.interval in (None, UNKNOWN) else "{:.4g} to {:.4g}".format(*deciding.interval),
        "where": deciding.where,
        "n": deciding.n + {None: ", point estimate", UNKNOWN: ", no interval"}.get(deciding.interval, ""),
        "data": premises.data(task, folder),
        "numbers": "; ".join([deciding.what, *_others(finding.effects, deciding), *finding.missing, *finding.notes]),
        "change": changing(rule, deciding, verdict) if met else f"a run that meets the premise: {claim['premise']}",
    }


def _others(effects: list[Effect], deciding: Effect) -> list[str]:
    """Return all effects but the deciding one, with their values."""
    return [f"{effect.what}: {in_words(effect)}" for effect in effects if effect is not deciding]
