"""Counts behind the page on the speed of whole models."""

import sys

import pytest
import torch

from replication.files.paths import ROOT

sys.path.append(str(ROOT / "benchmarks"))
from block_needs import Needs
from model_speed import random_blocks


def test_shares_and_recall_of_a_small_layer():
    counts = torch.tensor([[[6, 3, 0], [1, 0, 0]], [[0, 0, 5], [5, 0, 0]]])
    visible = torch.tensor([[True, True, True], [True, True, False]]).expand(2, -1, -1)
    visited = torch.tensor([[True, False, False], [True, False, True]]).expand(2, -1, -1)
    needs = Needs(counts, visible, visited)
    assert needs.share.tolist() == pytest.approx([0.4, 0.4])
    assert needs.recall.tolist() == pytest.approx([0.7, 0.5])
    assert needs.best_share(0.9).tolist() == pytest.approx([0.4, 0.4])
    assert needs.best_share(0.5).tolist() == pytest.approx([0.2, 0.2])
    assert needs.best_share(0.95).tolist() == pytest.approx([0.6, 0.4])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_random_blocks_are_a_share_of_the_visible_ones_with_the_diagonal(share, causal):
    blocks = random_blocks(1024, share, causal).to_dense()[0, 0]
    visible = torch.ones(16, 16).tril() if causal else torch.ones(16, 16)
    assert blocks.diagonal().all()
    assert not (blocks & (visible == 0)).any()
    assert blocks.sum() == max(round(share * visible.sum().item()), 16)
