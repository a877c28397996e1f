"""The claim ledger: what the papers claim, tested on what the workflow measured.

``config/published/claims.csv`` states the claims; each has a test of the same id in the module of its task.
"""

from pathlib import Path

import pandas as pd

from replication.claims import blocks, char_lm, forms, masked_lm, normalizer_speed, translation
from replication.claims.finding import Finding, Test

__all__ = ["TESTS", "Finding", "ledger"]

#: The folder of a task below the results, and the tests of its claims.
TASKS: dict[str, dict[str, Test]] = {
    "masked_lm": masked_lm.TESTS | blocks.TESTS,
    "translation": translation.TESTS,
    "char_lm": char_lm.TESTS,
    "forms": forms.TESTS,
    "normalizer_speed": normalizer_speed.TESTS,
}
TESTS: dict[str, Test] = {name: test for tests in TASKS.values() for name, test in tests.items()}


def ledger(claims: pd.DataFrame, results: Path, at_paper_scale: bool) -> pd.DataFrame:
    """Test every claim on the results in a folder.

    Parameters
    ----------
    claims : ``id, section, statement, value, tolerance, notebook``
        ``value`` and ``tolerance`` only where the claim is a number.
    results : folder with a folder per task; what is missing is untested

    Returns
    -------
    The claims with ``verdict`` (``holds``, ``fails``, ``untested at this scale``), ``mean``, ``standard_deviation`` and
    ``seeds`` of the deciding number, and ``numbers``.

    Raises
    ------
    ValueError
        If a claim has no test, or a test no claim.
    """
    if set(claims["id"]) != set(TESTS):
        raise ValueError(f"claims without a test, or tests without a claim: {sorted(set(claims['id']) ^ set(TESTS))}")
    found = {
        name: test(results / task)
        for task, tests in TASKS.items()
        for name, test in tests.items()
        if (results / task).is_dir()
    }
    return pd.DataFrame([row | _judge(row, found.get(row["id"]), at_paper_scale) for row in claims.to_dict("records")])


def _judge(claim: dict, finding: Finding | None, at_paper_scale: bool) -> dict[str, object]:
    if finding is None:
        finding = Finding(None, [], "not measured here")
    values = pd.Series(finding.per_seed, dtype=float)
    holds = finding.holds
    if holds is None and at_paper_scale and len(values):
        holds = abs(values.mean() - claim["value"]) <= claim["tolerance"]
    return {
        "verdict": "untested at this scale" if holds is None else "holds" if holds else "fails",
        "mean": values.mean(),
        "standard_deviation": values.std(),
        "seeds": len(values),
        "numbers": finding.numbers,
    }
