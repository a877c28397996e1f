"""A vocabulary, a batch and a language pair for translators."""

from argparse import Namespace

import pytest
import torch

WORDS = 40


@pytest.fixture(scope="module")
def task():
    pytest.importorskip("replication.translation.fairseq")
    from fairseq.data import Dictionary

    dictionary = Dictionary()
    for word in range(WORDS):
        dictionary.add_symbol(f"w{word}")
    return Namespace(source_dictionary=dictionary, target_dictionary=dictionary)


@pytest.fixture
def batch(task):
    """Five pairs of different lengths: source padded on the left, target on the right, as fairseq's collater does."""
    generator = torch.Generator().manual_seed(0)
    pad, eos = task.source_dictionary.pad(), task.source_dictionary.eos()
    source = torch.full((5, 9), pad)
    target = torch.full((5, 8), pad)
    for row, (src, tgt) in enumerate([(9, 8), (3, 5), (7, 2), (1, 8), (6, 6)]):
        words = torch.randint(4, 4 + WORDS, (src + tgt,), generator=generator)
        source[row, -src:] = words[:src]
        source[row, -1] = eos
        target[row, :tgt] = words[src:]
        target[row, 0] = eos
    return source, (source != pad).sum(1), target


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Words translated one by one."""
    pytest.importorskip("replication.translation.fairseq")
    from word_by_word import write_corpus

    folder = tmp_path_factory.mktemp("mt")
    write_corpus(folder)
    return folder
