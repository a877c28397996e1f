"""Unigram and interpolated bigram models: baselines of a language model on the same tokens."""

import numpy as np
from scipy.sparse import csr_matrix


class Bigram:
    """Interpolated Kneser-Ney bigram model with one absolute discount, over a closed vocabulary.

    Parameters
    ----------
    input_ids : integer array ``[N, n]``
        Training blocks; a bigram never spans two blocks.
    vocab_size : int
        Number of token ids.

    Notes
    -----
    The method has no discount if no bigram occurs once, as in a long text of few characters. The discount is then that of
    one such bigram, because without any, unseen bigrams would be impossible.

    References
    ----------
    Ney, Essen and Kneser (1994), On structuring probabilistic dependences in stochastic language modelling.
    """

    def __init__(self, input_ids: np.ndarray, vocab_size: int):
        left, right = input_ids[:, :-1].ravel(), input_ids[:, 1:].ravel()
        self.counts = csr_matrix((np.ones(len(left)), (left, right)), shape=(vocab_size, vocab_size))
        self.counts.sum_duplicates()
        values = self.counts.data
        once, twice = max((values == 1).sum(), 1), (values == 2).sum()
        self.discount = once / (once + 2 * twice)
        self.totals = np.bincount(left, minlength=vocab_size)
        self.followers = np.diff(self.counts.indptr)
        predecessors = np.bincount(self.counts.indices, minlength=vocab_size)
        # Every token gets half a predecessor more, so that unseen tokens are possible.
        self.continuation = (predecessors + 0.5) / (predecessors.sum() + 0.5 * vocab_size)

    def log_probability(self, previous: np.ndarray, following: np.ndarray) -> np.ndarray:
        """Return the natural log of p(following | previous), elementwise over integer arrays of one shape."""
        seen = np.asarray(self.counts[previous.ravel(), following.ravel()]).reshape(previous.shape)
        total = self.totals[previous]
        discounted = np.maximum(seen - self.discount, 0) / np.maximum(total, 1)
        reserved = np.where(total > 0, self.discount * self.followers[previous] / np.maximum(total, 1), 1.0)
        return np.log(discounted + reserved * self.continuation[following])


def unigram_log_probabilities(input_ids: np.ndarray, vocab_size: int) -> np.ndarray:
    """Return the natural log probability of every token ``[V]``, with 0.5 added to each count."""
    counts = np.bincount(input_ids.ravel(), minlength=vocab_size) + 0.5
    return np.log(counts / counts.sum())
