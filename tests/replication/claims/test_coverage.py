"""How often 95 % intervals contain the true mean, simulated for few seeds and any share of the units."""

import numpy as np
import pytest

from replication.claims import scores
from replication.claims.comparison import profile
from replication.claims.curves import Curves, Points
from replication.claims.finding import FAILS
from replication.claims.rule import Rule
from replication.claims.scores import UNKNOWN, Units, effect, interval, means
from replication.config.budgets import Budgets
from replication.results.budgets import budgets_of

#: Simulated data sets of a cell: the standard error of a coverage is half a point.
DATA_SETS = 2500
UNITS = 40
DRAWS = [2, 3, 5, 8]
#: Standard deviations of seeds, units and interaction. A unit counts a 40th in the mean, and a seed a half to an eighth.
SPREADS = {
    "no units": (1.0, 0.0, 0.0),
    "seeds dominate": (1.0, 1.0, 1.0),
    "hardly any units": (1.0, 0.1, 0.1),
    "equal": (1.0, 3.0, 1.0),
    "units dominate": (0.1, 3.0, 0.3),
    "interaction only": (0.0, 0.0, 1.0),
}
LOWEST, HIGHEST = 0.93, 0.98


@pytest.fixture(autouse=True, scope="module")
def few_resamples():
    """Make resamples cheap: the variance of 200 of them is known to 10 %."""
    with pytest.MonkeyPatch.context() as patched:
        scores.resampling.cache_clear()
        patched.setattr(scores, "RESAMPLES", 200)
        yield
    scores.resampling.cache_clear()


def simulated(draws, spread, random):
    """Return ``[1 + R, draws, data sets]``: means over units of seed, unit and interaction effects, whose true mean is 0."""
    of_seeds, of_units, of_both = spread
    found = random.normal(0, of_seeds, (1, draws, DATA_SETS)) + random.normal(0, of_units, (UNITS, 1, DATA_SETS))
    found = found + random.normal(0, of_both, (UNITS, draws, DATA_SETS))
    return means(found.reshape(UNITS, -1), np.ones((UNITS, draws * DATA_SETS))).reshape(-1, draws, DATA_SETS)


def coverage(intervals):
    return np.mean([low <= 0 <= high for low, high in intervals])


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("draws", DRAWS)
def test_intervals_contain_the_true_mean_about_as_often_as_they_say(draws, spread):
    values = simulated(draws, SPREADS[spread], np.random.default_rng(draws))
    if spread == "no units":
        found = [interval(values[:1, :, number]) for number in range(DATA_SETS)]
    else:
        units = Units(UNITS, "sentences")
        found = [effect("it", values[..., number], "student seed", units).interval for number in range(DATA_SETS)]
    assert LOWEST <= coverage(found) <= HIGHEST


def percentiles(values):
    """Return the interval of earlier ledgers: percentiles of means over seeds that are drawn with replacement."""
    resampled = np.tile(values[0], (scores.RESAMPLES, 1))
    drawn = np.random.default_rng(1).integers(values.shape[1], size=resampled.shape)
    return np.nanpercentile(np.take_along_axis(resampled, drawn, axis=1).mean(axis=1), (2.5, 97.5))


def test_percentiles_over_three_seeds_cover_far_less():
    """The simulation finds what was wrong with them."""
    values = simulated(3, SPREADS["no units"], np.random.default_rng(3))[:1]
    assert coverage(percentiles(values[..., number]) for number in range(DATA_SETS)) < 0.80


def test_units_alone_cover_nothing_of_the_next_seed_and_so_one_seed_has_no_interval():
    values = simulated(1, SPREADS["equal"], np.random.default_rng(1))
    over_units = np.percentile(values[1:, 0], (2.5, 97.5), axis=0)
    assert coverage(over_units.T) < 0.80
    assert interval(values[..., 0], Units(UNITS, "sentences")) == UNKNOWN


def smooth(random, budgets):
    """Return a random smooth curve of three seeds at budgets, whose true mean is 0 everywhere."""
    places = np.log([budget.share for budget in budgets])
    waves = np.stack([np.cos(number * (places - places[0])) for number in range(4)])
    return random.normal(0, 1, (3, len(waves))) @ waves


def test_words_are_right_at_all_budgets_at_once():
    """Two equal methods are level everywhere in 95 % of the data sets; with the interval of one budget they are not."""
    budgets = budgets_of(0.02, Budgets())
    shares = np.array([budget.share for budget in budgets])
    random, level, apart = np.random.default_rng(7), [], []
    # Scores that rise steeply with the share, so that curves pass through all points.
    rising = 1e3 * np.log(shares)
    for _ in range(DATA_SETS // 5):
        methods = {"a": [Points(shares, (rising + one)[None]) for one in smooth(random, budgets)]}
        methods["b"] = [Points(shares, rising[None])] * 3
        compared = Curves(methods, 0.02, budgets)
        differences = [compared.difference("a", "b", budget) for budget in budgets]
        level.append(profile(compared, "a", "b") == f"a: level with b from 50 to {budgets[0]}")
        apart.append(all(low <= 0 <= high for low, high in map(interval, differences)))
    assert np.mean(level) >= 0.95
    assert np.mean(apart) < 0.93


def test_equal_rivals_make_a_claim_fail_less_often_than_in_one_of_twenty():
    random, rule = np.random.default_rng(5), Rule(">=", 0.0)
    corrected, single = [], []
    for _ in range(DATA_SETS):
        effects = [effect("it", values, "student seed") for values in random.normal(0, 1, (8, 1, 3))]
        corrected.append(rule.of_all(effects)[0] == FAILS)
        single.append(any(rule.verdict(one) == FAILS for one in effects))
    assert np.mean(corrected) <= 0.05
    assert np.mean(single) > 0.10
