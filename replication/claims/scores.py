"""Effects with 95 % intervals: one method for seeds, for trained models, and for sentences or sequences within them.

Scores are arrays whose first axis is ``1 + R``: the score itself, then the score of each of R resamples of the units (sentences
or sequences). R = 0 where no score of single units was kept. Scores on the same units share their resamples, so differences are
paired. The last axis is the *draws*: seeds of one trained model, trained models, or repeats of a timing. A draw that has
several seeds of its own is their mean.

The interval has two parts. The draws' sample variance over their number is what another set of draws would change. The units'
bootstrap variance, less the share of it that the draws' variance already contains on average, is what other units would
change. The critical value lies between Student's for the draws and Student's for the units (:func:`critical_value`). Draws that
agree by chance give a narrow interval, others a wide one: 95 % of the intervals contain the true mean, over both.
"""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from replication.bleu import corpus_bleu
from replication.claims.finding import UNKNOWN, Effect

RESAMPLES = 1000
CONFIDENCE = 0.95
#: Between a weighted mean of critical values (1) and of their logarithms (0).
EXPONENT = 2 / 3
#: What an interval says something about, by what differs between its draws.
POPULATIONS = {"student seed": "this model", "model": "such models", "repeat": "this machine", "head": "this model"}


class Units(NamedTuple):
    """What is resampled within a draw: how many, and of which kind.

    >>> str(Units(200, "sentences"))
    '200 sentences'
    """

    count: int
    kind: str

    def __str__(self) -> str:
        return f"{self.count} {self.kind}"


@cache
def resampling(units: int) -> np.ndarray:
    """Return how often each unit counts, ``[1 + R, units]``: once, then as often as it was drawn with replacement."""
    drawn = np.random.default_rng(0).multinomial(units, np.full(units, 1 / units), size=RESAMPLES)
    return np.vstack([np.ones(units), drawn])


def means(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the units' sum over their count, ``[1 + R, ...]``, from each unit's sum and count, ``[units, ...]``."""
    weights = resampling(len(sums))
    return (weights @ sums) / (weights @ counts)


def known_mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Return the mean along an axis over values that are numbers; NaN where none is.

    A resample's front may not reach a sparsity that the front itself does.
    """
    known = np.isfinite(values)
    counts = known.sum(axis=axis)
    return np.where(counts > 0, np.where(known, values, 0).sum(axis=axis) / np.maximum(counts, 1), np.nan)


def bleu(counts: np.ndarray) -> np.ndarray:
    """Return corpus BLEU, ``[1 + R]``, from each sentence's counts, ``[units, 10]``."""
    return corpus_bleu(resampling(len(counts)) @ counts)


class Variances(NamedTuple):
    """Variances of a mean over draws, each ``[...]``, and their degrees of freedom."""

    of_draws: np.ndarray
    of_units: np.ndarray
    draws: int
    units: int

    @property
    def total(self) -> np.ndarray:
        return self.of_draws + self.of_units


def variances(values: np.ndarray, units: Units | None = None) -> Variances:
    """Split the variance of the draws' mean into the draws' and the units' parts.

    Parameters
    ----------
    values : array ``[1 + R, K, ...]``
        Scores of K >= 2 draws.
    units : Units, optional
        What the R resamples are of.
    """
    scores, resamples = values[0], values[1:]
    draws = len(scores)
    of_draws = scores.var(axis=0, ddof=1) / draws
    of_units = np.zeros_like(of_draws)
    if len(resamples):
        over_draws = known_mean(resamples, axis=1)
        within = np.nanvar(resamples - over_draws[:, None], axis=0, ddof=1).sum(axis=0) / (draws - 1)
        # The draws' variance contains what each draw's own units add to it, which resampling them adds once more.
        of_units = np.maximum(np.nanvar(over_draws, axis=0, ddof=1) - within / draws, 0)
    return Variances(of_draws, of_units, draws - 1, units.count - 1 if units else 0)


def critical_value(found: Variances, of_draws: float, of_units: float) -> np.ndarray:
    """Return the power mean of two critical values, weighted by the variances that they belong to.

    Cochran and Cox (1950) weight the values themselves, which covers up to 98.1 % with two draws. Satterthwaite's degrees of
    freedom cover as little as 91 % there. With the exponent :data:`EXPONENT`, intervals cover 93.5 to 97.6 % for 2 to 8 draws
    and any share of the units.
    """
    total = np.where(found.total > 0, found.total, 1.0)
    mean = (found.of_draws * of_draws**EXPONENT + found.of_units * of_units**EXPONENT) / total
    return mean ** (1 / EXPONENT)


def interval(values: np.ndarray, units: Units | None = None, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the interval of the mean over draws, ``[1 + R, K]``; :data:`~replication.claims.finding.UNKNOWN` of one draw.

    Resampling the units of a single draw would say nothing about the next one.
    """
    if values.shape[1] < 2:
        return UNKNOWN
    found = variances(values, units)
    critical = critical_value(found, student(found.draws, confidence), student(found.units, confidence))
    half = float(critical * np.sqrt(found.total))
    mean = float(values[0].mean())
    return mean - half, mean + half


def student(freedom: int, confidence: float) -> float:
    """Return Student's two-sided critical value; 1, which weighs nothing, without a degree of freedom."""
    if freedom < 1:
        return 1.0
    from scipy.special import stdtrit  # imported late: most readers of a ledger do not need scipy

    return float(stdtrit(freedom, (1 + confidence) / 2))


def population(draws: int, over: str, units: Units | None = None) -> str:
    """Say what an interval is about and what it varies over: ``such models: 3 models x 200 sentences``."""
    counted = f"{draws} {over}{'s' if draws > 1 else ''}"
    return f"{POPULATIONS[over]}: {counted}" + (f" x {units}" if units else "")


def effect(
    what: str,
    values: np.ndarray,
    over: str,
    units: Units | None = None,
    *,
    where: str = "",
    confidence: float = CONFIDENCE,
) -> Effect:
    """Return the mean over draws of ``values [1 + R, K]`` with its interval.

    Parameters
    ----------
    what : str
        What is compared.
    over : str
        What differs between draws, a key of :data:`POPULATIONS`.
    units : Units, optional
        What the R resamples are of.
    where : str
        Sparsities at which it was compared, in words.
    """
    n = population(values.shape[1], over, units)
    return Effect(what, float(values[0].mean()), interval(values, units, confidence), n, where, values.shape[1])


def over_units(what: str, values: np.ndarray, units: Units) -> Effect:
    """Return a score ``[1 + R]`` that no seed changes, on one model, with an interval over its units alone."""
    half = student(units.count - 1, CONFIDENCE) * float(np.nanstd(values[1:], ddof=1))
    value = float(values[0])
    return Effect(what, value, (value - half, value + half), f"this model: {units}")


def plain(what: str, value: float, n: str) -> Effect:
    """Return the effect of a number that is exact, counted or printed."""
    return Effect(what, float(value), None, n)


def correlation(what: str, values, over: str = "student seed") -> Effect:
    """Return the mean of one correlation per draw; its interval ends at 1 and -1."""
    found = over_seeds(what, values, over)
    low, high = found.interval
    return replace(found, interval=(max(low, -1.0), min(high, 1.0)) if np.isfinite(low) else UNKNOWN)


def counted(what: str, found: int, among: int, of: str, less: float = 0.0) -> Effect:
    """Return a share in per cent, less so many points, with Wilson's interval, as if each item were drawn independently.

    A share of 0 or 1 has no sample variance, so :func:`effect` cannot serve.
    """
    from scipy.stats import binomtest  # imported late, as above

    low, high = binomtest(found, among).proportion_ci(CONFIDENCE, "wilson")
    return Effect(what, 100 * found / among - less, (100 * low - less, 100 * high - less), f"this model: {among} {of}")


def over_seeds(what: str, values, over: str = "student seed") -> Effect:
    """Return the mean of one number per draw."""
    return effect(what, np.asarray(values, float)[None], over)
