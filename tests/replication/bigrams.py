"""Interpolated Kneser-Ney bigrams, in dictionaries and loops."""

from collections import Counter, defaultdict
from itertools import pairwise


def kneser_ney(blocks: list[list[int]], vocabulary: int):
    """p(following | previous) as Ney et al. (1994) write it, with half a predecessor more for every token."""
    counts = Counter(pair for block in blocks for pair in pairwise(block))
    frequencies = Counter(counts.values())
    discount = frequencies[1] / (frequencies[1] + 2 * frequencies[2])
    followers, predecessors, totals = defaultdict(set), defaultdict(set), Counter()
    for (left, right), count in counts.items():
        followers[left].add(right)
        predecessors[right].add(left)
        totals[left] += count

    def probability(previous: int, following: int) -> float:
        continuation = (len(predecessors[following]) + 0.5) / (len(counts) + 0.5 * vocabulary)
        if not totals[previous]:
            return continuation
        kept = max(counts[previous, following] - discount, 0) / totals[previous]
        return kept + discount * len(followers[previous]) / totals[previous] * continuation

    return probability
