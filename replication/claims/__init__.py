"""Claim ledger: the papers' claims, tested on the workflow's measurements.

``config/published/claims.csv`` lists the claims. Each has a test with the same id in the module of its task. Comparisons that a
profile asks for follow (:mod:`replication.claims.compared`).
"""

from pathlib import Path

import pandas as pd

from replication.claims import (
    bleu,
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
from replication.claims.change import changing
from replication.claims.compared import comparisons
from replication.claims.comparison import in_words
from replication.claims.configuration import data
from replication.claims.finding import NOT_COMPARABLE, SETTLED, UNKNOWN, UNTESTED, VERDICTS, Effect, Finding, Test
from replication.claims.rule import Rule
from replication.claims.stability import stability
from replication.claims.stated import check_claims
from replication.files.reading import digest, noting
from replication.results.budgets import deciding

__all__ = ["TESTS", "VERDICTS", "Effect", "Finding", "Rule", "ledger"]

#: Tests of each task's claims, by the task's folder below the results.
TASKS: dict[str, dict[str, Test]] = {
    "masked_lm": masked_lm.TESTS | blocks.TESTS,
    "translation": translation.TESTS | bleu.TESTS,
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
        A row per claim, then one per comparison of the run's configuration: ``id, paper, section, statement, kind``;
        ``criterion``, ``budgets`` and ``premise`` (with the measured value); ``verdict``, one of :data:`VERDICTS`;
        ``stability`` of a settled verdict (:func:`~replication.claims.stability.stability`); ``effect`` and 95 %
        ``interval`` of the deciding comparison; ``where``, the budget compared; ``n``, the population and what the interval
        varies over; ``data``, ``real`` or ``generated``; ``numbers``, all comparisons in words; ``change``, what would change
        the verdict; and ``inputs``, a hash of the files that were read.

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
    return judged_rows(claims, results, printed)


def judged_rows(claims: pd.DataFrame, results: Path, printed: bool = False) -> pd.DataFrame:
    """Return the :func:`ledger` of claims that need not be all claims of this checkout."""
    stated = claims.fillna({"unit": "", "premise": "", "budgets": ""}).to_dict("records")
    rows = [judge(claim, results, printed) for claim in stated]
    own = [_row(claim, task, test, results, printed) for task, claim, test in comparisons(results)]
    return pd.DataFrame(rows + own)


def judge(claim: dict[str, object], results: Path, printed: bool = False) -> dict[str, object]:
    """Return the row of one claim in the :func:`ledger`."""
    (task,) = (task for task, tests in TASKS.items() if claim["id"] in tests)
    return _row(claim, task, TESTS[claim["id"]], results, printed)


def _row(claim: dict[str, object], task: str, test: Test, results: Path, printed: bool) -> dict[str, object]:
    criterion = f"{claim['effect']} {claim['relation']} {claim['threshold']:g} {claim['unit']}"
    with noting() as read:
        judged = _judged(claim, task, test, results, printed)
    stated = {key: claim[key] for key in ("id", "paper", "section", "statement", "kind")}
    stated |= {"criterion": criterion.strip(), "budgets": claim["budgets"]}
    return stated | judged | {"inputs": digest(read, results)}


def _judged(claim: dict[str, object], task: str, test: Test, results: Path, printed: bool) -> dict[str, object]:
    blank = {"premise": claim["premise"], "verdict": UNTESTED, "stability": "", "effect": None, "interval": ""}
    blank |= {"where": "", "n": "", "data": "", "numbers": "not measured here", "change": ""}
    folder = results / task
    if not folder.is_dir():
        return blank
    budgets = [deciding(claim["budgets"])] if claim["budgets"] else []
    try:
        finding = test(folder, *budgets)
    except FileNotFoundError:
        finding = None
    if finding is None:
        return blank
    finding = finding.of_numbers().as_printed() if printed else finding.of_numbers()
    rule = Rule(claim["relation"], claim["threshold"])
    verdict, deciding_effect = rule.judge(finding)
    missing = finding.every_missing()
    if deciding_effect is None:
        words = [*_at_budgets(rule, finding), *missing, *_others(finding, None), *finding.notes]
        change = "; ".join(missing)
        return blank | {"numbers": "; ".join(words), "change": change, "data": data(task, folder)} if words else blank
    met, premise = premises.judge(claim["premise"], task, folder)
    return {
        "premise": premise,
        "verdict": verdict if met else NOT_COMPARABLE,
        "stability": stability(rule, finding, verdict) if met and verdict in SETTLED else "",
        "effect": float(f"{deciding_effect.value:.6g}"),
        "interval": ""
        if deciding_effect.interval in (None, UNKNOWN)
        else "{:.4g} to {:.4g}".format(*deciding_effect.interval),
        "where": deciding_effect.where,
        "n": deciding_effect.n + {None: ", point estimate", UNKNOWN: ", no interval"}.get(deciding_effect.interval, ""),
        "data": data(task, folder),
        "numbers": "; ".join(
            [
                deciding_effect.what,
                *_at_budgets(rule, finding),
                *_others(finding, deciding_effect),
                *missing,
                *finding.notes,
            ]
        ),
        "change": changing(rule, deciding_effect, verdict)
        if met
        else f"a run that meets the premise: {claim['premise']}",
    }


def _at_budgets(rule: Rule, finding: Finding) -> list[str]:
    """Return the verdict at each budget that decides."""
    return [f"at {budget}: {rule.judge(one)[0]}" for budget, one in finding.at.items()]


def _others(finding: Finding, deciding_effect: Effect | None) -> list[str]:
    """Return all effects but the deciding one, with their values."""
    effects = [effect for effect in finding.every_effect() if not _is(effect, deciding_effect)]
    return [f"{effect.what}{f' at {effect.where}' if effect.where else ''}: {in_words(effect)}" for effect in effects]


def _is(effect: Effect, deciding_effect: Effect | None) -> bool:
    """Return whether an effect is the deciding one, whose interval may have been corrected."""
    return deciding_effect is not None and (effect.what, effect.where) == (deciding_effect.what, deciding_effect.where)
