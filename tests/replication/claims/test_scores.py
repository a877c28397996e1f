"""Bootstrap, seeds and BLEU, against sacreBLEU, scipy and resampling by hand."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from scipy import stats

from replication.claims.finding import UNKNOWN, Finding, Rule
from replication.claims.scores import RESAMPLES, bleu, effect, interval_over_seeds, means, over_seeds, resampling

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
    assert interval_over_seeds(values) == pytest.approx(expected)
    assert interval_over_seeds(values[:1]) == UNKNOWN


def test_an_effect_of_one_seed_without_resamples_decides_nothing_unless_a_paper_prints_it():
    found = over_seeds("it", [0.5], "model")
    assert (found.value, found.interval, found.n) == (0.5, UNKNOWN, "1 model")
    assert [Rule(relation, 0.0).verdict(found) for relation in (">=", "<=")] == ["undecided", "undecided"]
    (printed,) = Finding([found]).as_printed().effects
    assert [Rule(relation, 0.0).verdict(printed) for relation in (">=", "<=")] == ["holds", "fails"]


def test_the_bootstrap_interval_covers_the_true_mean_about_as_often_as_it_says():
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        sample = random.normal(1.0, 2.0, size=60)
        low, high = effect("it", means(sample, np.ones(60))[:, None], "model", "60 sequences").interval
        covered += low <= 1.0 <= high
    assert 0.89 <= covered / 200 <= 0.99


def test_differences_on_the_same_sequences_are_paired():
    """Sequences differ by far more than two methods on one of them."""
    random = np.random.default_rng(6)
    hard = random.normal(0, 10, size=50)
    one, other = hard + random.normal(0, 0.1, 50), hard + 1 + random.normal(0, 0.1, 50)
    difference = means(other, np.ones(50)) - means(one, np.ones(50))
    low, high = effect("it", difference[:, None], "student seed", "50 sequences").interval
    assert 0.8 < low < 1 < high < 1.2


def test_seeds_are_resampled_too():
    values = np.tile([[0.0, 1.0, 2.0]], (1 + RESAMPLES, 1))
    found = effect("it", values, "student seed", "9 sequences")
    assert found.value == 1.0
    assert found.interval[0] < 0.4 < 1.6 < found.interval[1]
    assert found.n == "3 student seeds x 9 sequences"
