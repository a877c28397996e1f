"""Unigram and interpolated bigram models: what a language model must clearly beat, on the same tokens."""

import numpy as np
from scipy.sparse import csr_matrix


class Bigram:
    """Interpolated Kneser-Ney bigrams (Ney et al. 1994) with one absolute discount, over a closed vocabulary.

    Where no bigram occurs once, as in a long text of few characters, the discount is that of one that does: the method has
    none there, and without any what was never seen would be impossible.

    Parameters
    ----------
    input_ids : integer array ``[N, n]``
        Training blocks; a bigram never spans two blocks.
    vocab_size : int
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
        # Half a predecessor more for every token, so that unseen ones are possible.
        self.continuation = (predecessors + 0.5) / (predecessors.sum() + 0.5 * vocab_size)

    def log_probability(self, previous: np.ndarray, following: np.ndarray) -> np.ndarray:
        """Natural log of p(following | previous), elementwise over integer arrays of one shape."""
        seen = np.asarray(self.counts[previous.ravel(), following.ravel()]).reshape(previous.shape)
        total = self.totals[previous]
        discounted = np.maximum(seen - self.discount, 0) / np.maximum(total, 1)
        reserved = np.where(total > 0, self.discount * self.followers[previous] / np.maximum(total, 1), 1.0)
        return np.log(discounted + reserved * self.continuation[following])


def unigram_log_probabilities(input_ids: np.ndarray, vocab_size: int) -> np.ndarray:
    """Natural log probability of every token ``[V]``, counts smoothed by one half."""
    counts = np.bincount(input_ids.ravel(), minlength=vocab_size) + 0.5
    return np.log(counts / counts.sum())
