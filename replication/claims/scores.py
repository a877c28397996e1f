"""Effects with their intervals: paired over sequences by bootstrap, and over seeds.

Scores are arrays whose first axis is ``1 + R``: the score itself, then that of each of R resamples of the sequences (R = 0
where no score of single sequences was kept). Scores on the same sequences share their resamples: differences are paired.
"""

from functools import cache

import numpy as np

from replication.bleu import corpus_bleu
from replication.claims.finding import UNKNOWN, Effect

RESAMPLES = 1000
#: Percentiles of a 95 % interval.
TAILS = (2.5, 97.5)


@cache
def resampling(units: int) -> np.ndarray:
    """How often each of so many sequences counts, ``[1 + R, units]``: once, then as it was drawn with replacement."""
    drawn = np.random.default_rng(0).multinomial(units, np.full(units, 1 / units), size=RESAMPLES)
    return np.vstack([np.ones(units), drawn])


def means(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Sum over sequences by count, ``[1 + R]``, from those of each sequence, ``[units]``."""
    weights = resampling(len(sums))
    return (weights @ sums) / (weights @ counts)


def bleu(counts: np.ndarray) -> np.ndarray:
    """Corpus BLEU, ``[1 + R]``, from the counts of each sentence, ``[units, 10]``."""
    return corpus_bleu(resampling(len(counts)) @ counts)


def effect(what: str, values: np.ndarray, over: str, units: str = "") -> Effect:
    """The mean over seeds of values ``[1 + R, seeds]``, with its interval.

    From resamples of sequences, seeds are resampled too. Without them the interval is Student's over seeds, and
    :data:`~replication.claims.finding.UNKNOWN` of a single seed.

    Parameters
    ----------
    over : what differs between seeds: ``"student seed"``, ``"model"``
    units : what was resampled, with its number: ``"200 sentences"``
    """
    estimate, resampled = values[0], values[1:]
    n = f"{len(estimate)} {over}{'s' if len(estimate) > 1 else ''}" + (f" x {units}" if units else "")
    mean = float(estimate.mean())
    if len(resampled):
        drawn = np.random.default_rng(1).integers(len(estimate), size=resampled.shape)
        low, high = np.nanpercentile(np.take_along_axis(resampled, drawn, axis=1).mean(axis=1), TAILS)
        return Effect(what, mean, (float(low), float(high)), n)
    return Effect(what, mean, interval_over_seeds(estimate), n)


def interval_over_seeds(values: np.ndarray) -> tuple[float, float]:
    """Student's 95 % interval of a mean ``[seeds]``; that of a single seed has no end."""
    if len(values) < 2:
        return UNKNOWN
    from scipy.special import stdtrit  # late: not all who read a ledger need it

    half = stdtrit(len(values) - 1, TAILS[1] / 100) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def plain(what: str, value: float, n: str) -> Effect:
    """A number that is exact, counted, or printed."""
    return Effect(what, float(value), None, n)


def counted(what: str, found: int, among: int, of: str, less: float = 0.0) -> Effect:
    """A share in per cent, less so many points, with Wilson's interval: as if each of what is counted were drawn alone."""
    from scipy.stats import binomtest  # late: not all who read a ledger need it

    low, high = binomtest(found, among).proportion_ci(0.95, "wilson")
    return Effect(what, 100 * found / among - less, (100 * low - less, 100 * high - less), f"{among} {of}")


def over_seeds(what: str, values, over: str = "student seed") -> Effect:
    """The mean of one number per seed."""
    return effect(what, np.asarray(values, float)[None], over)
