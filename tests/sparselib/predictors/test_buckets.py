"""Eq. 6: an edge iff query and key share a bucket."""

import torch

from sparselib.predictors import share_a_bucket


def test_equals_its_loop():
    generator = torch.Generator().manual_seed(0)
    queries = torch.rand(2, 3, 5, 7, generator=generator) < 0.2
    keys = torch.rand(2, 3, 6, 7, generator=generator) < 0.2
    shared = share_a_bucket(queries, keys)
    assert shared.shape == (2, 3, 5, 6)
    for b in range(2):
        for h in range(3):
            for i in range(5):
                for j in range(6):
                    common = {*queries[b, h, i].nonzero().flatten().tolist()} & {
                        *keys[b, h, j].nonzero().flatten().tolist()
                    }
                    assert shared[b, h, i, j] == bool(common)
