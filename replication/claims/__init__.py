"""The claim ledger: what the papers claim, tested on what the workflow measured.

``config/published/claims.csv`` states the claims; each has a test of the same id in the module of its task.
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
from replication.claims.finding import NOT_COMPARABLE, UNKNOWN, UNTESTED, VERDICTS, Effect, Finding, Rule, Test
from replication.reading import digest, noting

__all__ = ["TESTS", "VERDICTS", "Effect", "Finding", "Rule", "ledger"]

#: The folder of a task below the results, and the tests of its claims.
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
    claims : ``id, paper, section, statement, effect, unit, relation, threshold, premise, notebook``
    results : folder with a folder per task, and the run's ``config.yaml``; what is missing is untested
    printed : whether numbers of one model are those that a paper prints, which it states as they are

    Returns
    -------
    A row per claim: ``id, paper, section, statement, criterion, premise`` (with what was measured of it), ``verdict`` (one of
    :data:`VERDICTS`), ``effect`` and ``interval`` (95 %) of the comparison that decides, ``n``, ``numbers`` (all of them, in
    words) and ``inputs``, a hash of the files that were read.

    Raises
    ------
    ValueError
        If a claim has no test, or a test no claim.
    """
    if set(claims["id"]) != set(TESTS):
        raise ValueError(f"claims without a test, or tests without a claim: {sorted(set(claims['id']) ^ set(TESTS))}")
    stated = claims.fillna({"unit": "", "premise": ""}).to_dict("records")
    return pd.DataFrame([judge(claim, results, printed) for claim in stated])


def judge(claim: dict[str, object], results: Path, printed: bool = False) -> dict[str, object]:
    """The row of one claim in the :func:`ledger`."""
    (task,) = (task for task, tests in TASKS.items() if claim["id"] in tests)
    criterion = f"{claim['effect']} {claim['relation']} {claim['threshold']:g} {claim['unit']}"
    with noting() as read:
        judged = _judged(claim, task, results, printed)
    stated = {key: claim[key] for key in ("id", "paper", "section", "statement")}
    return stated | {"criterion": criterion.strip()} | judged | {"inputs": digest(read, results)}


def _judged(claim: dict[str, object], task: str, results: Path, printed: bool) -> dict[str, object]:
    nothing = {"premise": claim["premise"], "verdict": UNTESTED, "effect": None, "interval": "", "n": "", "numbers": ""}
    folder = results / task
    if not folder.is_dir():
        return nothing | {"numbers": "not measured here"}
    try:
        finding = TESTS[claim["id"]](folder)
    except FileNotFoundError:
        finding = None
    if finding is not None:
        finding = finding.of_numbers().as_printed() if printed else finding.of_numbers()
    if finding is None or not finding.effects:
        said = "; ".join(finding.notes) if finding else ""
        return nothing | {"numbers": said or "not measured here"}
    met, premise = premises.judge(claim["premise"], task, folder)
    verdict, deciding = Rule(claim["relation"], claim["threshold"]).of_all(finding.effects)
    return {
        "premise": premise,
        "verdict": verdict if met else NOT_COMPARABLE,
        "effect": float(f"{deciding.value:.6g}"),
        "interval": "" if deciding.interval in (None, UNKNOWN) else "{:.4g} to {:.4g}".format(*deciding.interval),
        "n": deciding.n + {None: ", point estimate", UNKNOWN: ", no interval"}.get(deciding.interval, ""),
        "numbers": "; ".join([deciding.what, *_others(finding.effects, deciding), *finding.notes]),
    }


def _others(effects: list[Effect], deciding: Effect) -> list[str]:
    """All effects but the one that decides, with their values."""
    return [f"{effect.what}: {effect.value:.4g}" for effect in effects if effect is not deciding]
