"""Effects with 95 % intervals, by one method for seeds, trained models, and sentences or sequences within them.

The first axis of a score array is ``1 + R``: the score itself, then the scores of R resamples of the units (sentences or
sequences). R = 0 if no scores of single units were stored. Scores on the same units share their resamples, so differences are
paired. The last axis contains the *draws*: seeds of one trained model, trained models, or repeats of a timing. A draw with
several seeds is represented by their mean.

The interval has two parts. The draws' sample variance, divided by their number, is the effect of drawing again. The units'
bootstrap variance, minus the share that the draws' variance already contains on average, is the effect of other units. The
critical value lies between Student's for the draws and Student's for the units (:func:`critical_value`). Draws that agree by
chance give a narrow interval, others a wide one. On average over both, 95 % of the intervals contain the true mean.
"""

from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from replication.claims.finding import UNKNOWN, Effect
from replication.results.bleu import corpus_bleu

RESAMPLES = 1000
CONFIDENCE = 0.95
#: Exponent of the power mean of critical values: 1 is the arithmetic mean, 0 the geometric one.
EXPONENT = 2 / 3
#: Population that an interval refers to, by the kind of its draws.
POPULATIONS = {"student seed": "this model", "model": "such models", "repeat": "this machine", "head": "this model"}


class Units(NamedTuple):
    """Units that are resampled within a draw: their number and kind.

    >>> str(Units(200, "sentences"))
    '200 sentences'
    """

    count: int
    kind: str

    def __str__(self) -> str:
        return f"{self.count} {self.kind}"


@cache
def resampling(units: int) -> np.ndarray:
    """Return the units' weights ``[1 + R, units]``: ones, then the counts of R draws with replacement."""
    drawn = np.random.default_rng(0).multinomial(units, np.full(units, 1 / units), size=RESAMPLES)
    return np.vstack([np.ones(units), drawn])


def means(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean ``[1 + R, ...]`` from each unit's sum and count, ``[units, ...]``."""
    weights = resampling(len(sums))
    return (weights @ sums) / (weights @ counts)


def known_mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Return the mean of the finite values along an axis; NaN if there are none.

    A resample's front may not reach all sparsities that the front itself reaches.
    """
    known = np.isfinite(values)
    counts = known.sum(axis=axis)
    return np.where(counts > 0, np.where(known, values, 0).sum(axis=axis) / np.maximum(counts, 1), np.nan)


def known_variance(values: np.ndarray) -> np.ndarray:
    """Return the sample variance of the finite values along the first axis; NaN if there are fewer than two."""
    enough = np.isfinite(values).sum(axis=0) > 1
    return np.where(enough, np.nanvar(np.where(enough, values, 0), axis=0, ddof=1), np.nan)


def bleu(counts: np.ndarray) -> np.ndarray:
    """Return corpus BLEU, ``[1 + R]``, from each sentence's counts, ``[units, 10]``."""
    return corpus_bleu(resampling(len(counts)) @ counts)


class Variances(NamedTuple):
    """Variances of a mean over draws, and their degrees of freedom.

    Attributes
    ----------
    of_draws, of_units : array ``[...]``
        The two parts of the variance.
    draws, units : int
        Degrees of freedom of each part.
    """

    of_draws: np.ndarray
    of_units: np.ndarray
    draws: int
    units: int

    @property
    def total(self) -> np.ndarray:
        """Sum of both parts."""
        return self.of_draws + self.of_units


def variances(values: np.ndarray, units: Units | None = None) -> Variances:
    """Split the variance of the draws' mean into the draws' and the units' parts.

    Parameters
    ----------
    values : array ``[1 + R, K, ...]``
        Scores of K >= 2 draws.
    units : Units, optional
        Units of the R resamples.
    """
    scores, resamples = values[0], values[1:]
    draws = len(scores)
    of_draws = scores.var(axis=0, ddof=1) / draws
    of_units = np.zeros_like(of_draws)
    if len(resamples):
        over_draws = known_mean(resamples, axis=1)
        within = known_variance(resamples - over_draws[:, None]).sum(axis=0) / (draws - 1)
        # The draws' variance already contains the variance of each draw's units, so that share is subtracted.
        of_units = np.maximum(known_variance(over_draws) - within / draws, 0)
    return Variances(of_draws, of_units, draws - 1, units.count - 1 if units else 0)


def critical_value(found: Variances, of_draws: float, of_units: float) -> np.ndarray:
    """Return the power mean of two critical values, weighted by their variances.

    Cochran and Cox (1950) weight the values themselves, which covers up to 98.1 % with two draws. Satterthwaite's degrees of
    freedom cover as little as 91 % there. With the exponent :data:`EXPONENT`, intervals cover 93.5 to 97.6 % for 2 to 8 draws
    and any share of the units.
    """
    total = np.where(found.total > 0, found.total, 1.0)
    mean = (found.of_draws * of_draws**EXPONENT + found.of_units * of_units**EXPONENT) / total
    return mean ** (1 / EXPONENT)


def interval(values: np.ndarray, units: Units | None = None, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the interval of the mean over draws ``[1 + R, K]``.

    A single draw gives :data:`~replication.claims.finding.UNKNOWN`, because its units do not show how other draws differ.
    """
    if values.shape[1] < 2:
        return UNKNOWN
    found = variances(values, units)
    critical = critical_value(found, student(found.draws, confidence), student(found.units, confidence))
    half = float(critical * np.sqrt(found.total))
    mean = float(values[0].mean())
    return mean - half, mean + half


def student(freedom: int, confidence: float) -> float:
    """Return Student's two-sided critical value, or 1 without degrees of freedom, where its weight is zero."""
    if freedom < 1:
        return 1.0
    from scipy.special import stdtrit  # imported late, because reading a ledger rarely needs scipy

    return float(stdtrit(freedom, (1 + confidence) / 2))


def population(draws: int, over: str, units: Units | None = None) -> str:
    """Describe the population of an interval and what it varies over: ``such models: 3 models x 200 sentences``."""
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
        Name of the comparison.
    values : array ``[1 + R, K]``
        Scores of K draws.
    over : str
        Kind of the draws, a key of :data:`POPULATIONS`.
    units : Units, optional
        Units of the R resamples.
    where : str
        Compared sparsities, in words.
    confidence : float
        Level of the interval.
    """
    n = population(values.shape[1], over, units)
    interval_at = partial(interval, values, units)
    draws = tuple(values[0].tolist())
    return Effect(what, float(values[0].mean()), interval_at(confidence), n, where, draws, over, interval_at)


def over_units(what: str, values: np.ndarray, units: Units) -> Effect:
    """Return the effect of one model's score ``[1 + R]`` that no seed changes, with an interval over units alone."""
    value, deviation = float(values[0]), float(np.sqrt(known_variance(values[1:])))

    def interval_at(confidence: float) -> tuple[float, float]:
        half = student(units.count - 1, confidence) * deviation
        return value - half, value + half

    return Effect(what, value, interval_at(CONFIDENCE), f"this model: {units}", interval_at=interval_at)


def plain(what: str, value: float, n: str) -> Effect:
    """Return the effect of a number that is exact, counted or printed."""
    return Effect(what, float(value), None, n)


def correlation(what: str, values, over: str = "student seed") -> Effect:
    """Return the mean of one correlation per draw, with its interval clipped to -1 and 1."""
    unclipped = over_seeds(what, values, over)
    if not np.isfinite(unclipped.interval[0]):
        return unclipped

    def interval_at(confidence: float) -> tuple[float, float]:
        low, high = unclipped.interval_at(confidence)
        return max(low, -1.0), min(high, 1.0)

    return replace(unclipped, interval=interval_at(CONFIDENCE), interval_at=interval_at)


def counted(what: str, found: int, among: int, of: str, less: float = 0.0, candidates: int = 1) -> Effect:
    """Return a share in percent, minus ``less`` points, with Wilson's interval for independent items.

    :func:`effect` cannot be used here, because shares of 0 or 1 have no sample variance. If the share is the best of several
    `candidates`, the intervals of all of them hold at once, by Bonferroni's correction.
    """
    from scipy.stats import binomtest  # imported late, as above

    def interval_at(confidence: float) -> tuple[float, float]:
        low, high = binomtest(found, among).proportion_ci(1 - (1 - confidence) / candidates, "wilson")
        return 100 * low - less, 100 * high - less

    n = f"this model: {among} {of}" + (f", best of {candidates}" if candidates > 1 else "")
    return Effect(what, 100 * found / among - less, interval_at(CONFIDENCE), n, interval_at=interval_at)


def over_seeds(what: str, values, over: str = "student seed") -> Effect:
    """Return the mean of one number per draw."""
    return effect(what, np.asarray(values, float)[None], over)
