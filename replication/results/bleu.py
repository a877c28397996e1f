"""Corpus BLEU from counts that add up over sentences."""

import numpy as np

#: Columns of the counts: words of the hypothesis and of the reference, matching n-grams, and all n-grams.
COUNTS = ["words", "reference_words", *(f"matches{n}" for n in range(1, 5)), *(f"ngrams{n}" for n in range(1, 5))]


def corpus_bleu(totals: np.ndarray) -> np.ndarray:
    """Compute BLEU as sacreBLEU does by default, with exponential smoothing of orders without a match.

    Parameters
    ----------
    totals : array ``[..., 10]``
        Sums over sentences, in the order of :data:`COUNTS`.

    Returns
    -------
    array ``[...]``
        BLEU, 0 to 100.
    """
    words, reference, matches, ngrams = totals[..., 0], totals[..., 1], totals[..., 2:6], totals[..., 6:]
    unmatched = (matches == 0) & (ngrams > 0)
    smoothed = np.where(unmatched, 0.5 ** np.cumsum(unmatched, axis=-1), matches)
    usable = matches.any(axis=-1) & (ngrams > 0).all(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_precision = np.log(smoothed / ngrams).mean(axis=-1)
        brevity = np.minimum(0, 1 - reference / words)
    return np.where(usable, 100 * np.exp(np.where(usable, brevity + log_precision, 0)), 0.0)
