"""Attention by row and column, against a double loop."""

import pytest
import torch
from characters import SIZES, corpus, trained

from replication.char_lm.data import cut
from replication.char_lm.evaluation import attention_in_parts

DENSE = {"architecture": "matrix_transformer", "top_k": None, "length": 20, "width": 5} | SIZES


def by_loops(weights: torch.Tensor, stride: int) -> dict[str, list[float]]:
    """Of one head's weights ``[n, n]``: shares of row, column and either, and those of uniform attention."""
    found = {name: [] for name in ("row", "column", "either")} | {
        f"uniform_{name}": [] for name in ("row", "column", "either")
    }
    for i in range(len(weights)):
        row = {j for j in range(i + 1) if i - j <= stride}
        column = {j for j in range(i + 1) if (i - j) % stride == 0}
        if len(row | column) == i + 1:
            continue
        for name, keys in (("row", row), ("column", column), ("either", row | column)):
            found[name].append(sum(float(weights[i, j]) for j in keys))
            found[f"uniform_{name}"].append(len(keys) / (i + 1))
    return found


def test_shares_are_those_of_a_loop():
    model = trained(DENSE)
    _, ids = corpus(2)
    stream = cut(ids[:201], 2, 20)
    weights = []
    with torch.no_grad():
        for inputs, _ in stream.segments(20):
            seen = []
            model(inputs, None, lambda layer, found, seen=seen: seen.append(found))
            weights.append(torch.stack(seen))  # [L, B, H, n, n]
    table = attention_in_parts(model, stream, 20, stride=5).set_index(["layer", "head"])
    every = torch.cat(weights, dim=1)
    for layer, head in table.index:
        loops = [by_loops(one, 5) for one in every[layer, :, head]]
        for name in table:
            expected = sum(sum(found[name]) for found in loops) / sum(len(found[name]) for found in loops)
            assert table.loc[(layer, head), name] == pytest.approx(expected)


def test_a_strided_model_looks_nowhere_else():
    strided = trained(DENSE | {"factorised": {"pattern": "strided", "stride": 5, "heads": "merged"}})
    stream = cut(corpus(2)[1][:201], 2, 20)
    assert attention_in_parts(strided, stream, 20, stride=5)["either"].tolist() == pytest.approx([1.0] * 4)
