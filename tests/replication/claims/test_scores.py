"""Intervals and BLEU, against sacreBLEU, scipy and resampling by hand; test_coverage.py simulates how often they are right."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from scipy import stats

from replication.claims.finding import UNKNOWN, Finding
from replication.claims.rule import Rule
from replication.claims.scores import (
    RESAMPLES,
    Units,
    bleu,
    counted,
    effect,
    interval,
    known_variance,
    means,
    over_seeds,
    over_units,
    population,
    resampling,
    variances,
)

WORDS = "the a cat dog house river sees finds old small near under".split()


def made_sentences(count, seed=0):
    random = np.random.default_rng(seed)
    references = [" ".join(random.choice(WORDS, random.integers(3, 12))) for _ in range(count)]
    kept = [[word for word in line.split() if random.random() < 0.85] or ["the"] for line in references]
    return [" ".join(words) for words in kept], references


def counts_of(hypotheses, references):
    metric, rows = BLEU(force=True, effective_order=True), []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        found = metric.sentence_score(hypothesis, [reference])
        rows.append([found.sys_len, found.ref_len, *found.counts, *found.totals])
    return np.array(rows, float)


def test_bleu_from_counts_is_sacrebleus_on_the_text_and_on_every_resample():
    hypotheses, references = made_sentences(20)
    found = bleu(counts_of(hypotheses, references))
    weights = resampling(20)
    assert len(found) == 1 + RESAMPLES
    for row in (0, 1, 2, 500, RESAMPLES):
        drawn = np.repeat(np.arange(20), weights[row].astype(int))
        score = BLEU(force=True).corpus_score([hypotheses[i] for i in drawn], [[references[i] for i in drawn]]).score
        assert found[row] == pytest.approx(score, abs=1e-9)


@pytest.mark.parametrize(
    ("hypothesis", "reference"),
    [("the cat", "the cat"), ("the old cat sees", "a dog the cat"), ("x y z w", "the cat sees it"), ("the", "the")],
)
def test_bleu_of_poor_text_is_smoothed_as_sacrebleu_does(hypothesis, reference):
    expected = BLEU(force=True).corpus_score([hypothesis], [[reference]]).score
    assert bleu(counts_of([hypothesis], [reference]))[0] == pytest.approx(expected, abs=1e-9)


def test_means_are_those_of_the_sequences_that_were_drawn():
    sums, counts = np.array([3.0, 10.0, 1.0]), np.array([1.0, 5.0, 2.0])
    found, weights = means(sums, counts), resampling(3)
    assert found[0] == pytest.approx(14 / 8)
    drawn = np.repeat(np.arange(3), weights[7].astype(int))
    assert len(drawn) == 3
    assert found[7] == pytest.approx(sums[drawn].sum() / counts[drawn].sum())


def test_the_interval_over_seeds_is_students():
    values = np.array([1.0, 2.0, 4.0])
    expected = stats.t.interval(0.95, 2, loc=values.mean(), scale=stats.sem(values))
    assert interval(values[None]) == pytest.approx(expected)
    assert interval(values[None], confidence=0.99) == pytest.approx(
        stats.t.interval(0.99, 2, loc=values.mean(), scale=stats.sem(values))
    )
    assert interval(values[None, :1]) == UNKNOWN


def test_an_effect_of_one_seed_without_resamples_decides_nothing_unless_a_paper_prints_it():
    found = over_seeds("it", [0.5], "model")
    assert (found.value, found.interval, found.n) == (0.5, UNKNOWN, "such models: 1 model")
    assert [Rule(relation, 0.0).verdict(found) for relation in (">=", "<=")] == ["undecided", "undecided"]
    (printed,) = Finding([found]).as_printed().effects
    assert [Rule(relation, 0.0).verdict(printed) for relation in (">=", "<=")] == ["holds", "fails"]


def with_units(scores):
    """Return means over units ``[1 + R, seeds]`` of scores ``[units, seeds]``, and the units."""
    return means(scores, np.ones(scores.shape)), Units(len(scores), "sentences")


def test_differences_on_the_same_sentences_are_paired():
    """Sentences differ by far more than two methods on one of them."""
    random = np.random.default_rng(6)
    hard = random.normal(0, 10, size=(50, 1))
    one, other = hard + random.normal(0, 0.1, (50, 4)), hard + 1 + random.normal(0, 0.1, (50, 4))
    values, units = with_units(other)
    low, high = effect("it", values - with_units(one)[0], "student seed", units).interval
    assert 0.8 < low < 1 < high < 1.2
    alone = effect("it", values, "student seed", units).interval
    assert alone[1] - alone[0] > 4


def test_seeds_widen_an_interval_over_sentences_and_sentences_one_over_seeds():
    random = np.random.default_rng(7)
    of_sentences, of_seeds = random.normal(0, 3, (40, 1)), np.array([[-1.0, 0.0, 1.0]])

    def width(scores):
        low, high = interval(*with_units(scores))
        return high - low

    both, seeds = width(of_sentences + of_seeds), width(0 * of_sentences + of_seeds)
    sentences = width(of_sentences + 0 * of_seeds)
    assert seeds == pytest.approx(2 * stats.t.ppf(0.975, 2) / np.sqrt(3))
    # The same sentences are in every mean: a sentence's spread is not divided by the number of seeds.
    assert sentences == pytest.approx(2 * stats.t.ppf(0.975, 39) * of_sentences.std(ddof=1) / np.sqrt(40), rel=0.1)
    assert both > sentences
    totals = [variances(*with_units(scores)).total for scores in (of_sentences + of_seeds, 0 * of_sentences + of_seeds)]
    assert totals[0] > totals[1]


def test_what_sentences_add_to_each_seed_alone_is_not_counted_twice():
    """Of pure interaction, the draws' variance contains all."""
    random = np.random.default_rng(8)
    shares = [variances(*with_units(random.normal(0, 1, (60, 5)))) for _ in range(100)]
    of_draws, of_units = (np.mean([getattr(found, name) for found in shares]) for name in ("of_draws", "of_units"))
    assert of_draws == pytest.approx(1 / 60 / 5, rel=0.15)
    assert of_units < 0.25 * of_draws


def test_one_model_is_never_decided_by_its_sentences():
    values, units = with_units(np.random.default_rng(9).normal(5, 0.1, (200, 1)))
    found = effect("it", values, "model", units)
    assert found.value == pytest.approx(5, abs=0.1)
    assert (found.interval, len(found.draws)) == (UNKNOWN, 1)
    assert [Rule(relation, 0.0).verdict(found) for relation in (">=", "<=")] == ["undecided", "undecided"]


def test_a_score_that_no_seed_changes_has_an_interval_over_its_units_alone():
    scores = np.random.default_rng(10).normal(0.5, 0.1, 80)
    found = over_units("it", means(scores, np.ones(80)), Units(80, "sequences"))
    half = stats.t.ppf(0.975, 79) * scores.std(ddof=1) / np.sqrt(80)
    assert found.value == pytest.approx(scores.mean())
    assert found.interval == pytest.approx((scores.mean() - half, scores.mean() + half), abs=0.15 * half)
    assert found.n == "this model: 80 sequences"


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ("student seed", "this model: 3 student seeds x 9 sentences"),
        ("model", "such models: 3 models x 9 sentences"),
        ("repeat", "this machine: 3 repeats x 9 sentences"),
    ],
)
def test_an_effect_names_the_population_that_its_interval_is_about(over, words):
    assert population(3, over, Units(9, "sentences")) == words
    assert population(1, over) == words.split(" x ")[0].replace("3", "1").removesuffix("s")


def test_a_share_has_wilsons_interval_and_its_population():
    found = counted("it", 8, 10, "heads", less=50.0)
    centre, half = (0.8 + 1.96**2 / 20) / (1 + 1.96**2 / 10), 1.96 * np.sqrt(0.016 + 1.96**2 / 400) / (1 + 1.96**2 / 10)
    assert found.value == pytest.approx(30)
    assert found.interval == pytest.approx((100 * (centre - half) - 50, 100 * (centre + half) - 50), abs=0.01)
    assert found.n == "this model: 10 heads"


@pytest.mark.filterwarnings("error")
def test_a_score_that_no_resample_reaches_has_an_unknown_interval_without_a_warning():
    values = np.full((5, 2), np.nan)
    assert np.isnan(effect("x", values, "student seed", Units(4, "sequences")).interval).all()
    assert np.isnan(over_units("x", values[:, 0], Units(4, "sequences")).interval).all()
    one = np.array([1.0, 2.0, np.nan, np.nan])
    assert np.isnan(known_variance(one[2:])).all()
    assert known_variance(np.array([1.0, 3.0, np.nan])) == pytest.approx(2)


@pytest.mark.parametrize("candidates", [1, 576])
def test_the_best_of_many_shares_has_wilsons_interval_of_all_of_them_at_once(candidates):
    """Of shares that are all one half, the best one's interval hardly ever misses it."""
    from scipy.stats import binomtest

    found = counted("it", 60, 100, "items", candidates=candidates)
    low, high = binomtest(60, 100).proportion_ci(1 - 0.05 / candidates, "wilson")
    assert found.interval == pytest.approx((100 * low, 100 * high))
    assert ("best of 576" in found.n) == (candidates > 1)
    random = np.random.default_rng(2)
    best = random.binomial(200, 0.5, (300, 576)).max(axis=1)
    misses = [counted("it", int(one), 200, "items", candidates=candidates).interval[0] > 50 for one in best]
    assert np.mean(misses) < 0.05 if candidates > 1 else np.mean(misses) > 0.9
