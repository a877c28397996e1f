"""How much of a model's attention lies where the parts of a factorised pattern would put it."""

import pandas as pd
import torch
from torch import Tensor

from replication.char_lm.data import Stream
from replication.char_lm.recurrent import RecurrentModel
from sparselib import masks


@torch.no_grad()
def attention_in_parts(model: RecurrentModel, stream: Stream, length: int, stride: int) -> pd.DataFrame:
    """Of every head, the mean share of a query's attention on its row, on its column, and on both together.

    The parts are those of the strided pattern: the last ``stride`` positions, and every ``stride``-th position before. Of
    queries that see nothing beside their parts, nothing can be told: they are left out.

    Returns
    -------
    A row per layer and head: ``row, column, either``, and ``uniform_row, uniform_column, uniform_either``, the same of a head
    that attends to all that it sees alike.
    """
    device = model.output.weight.device
    row, column = (masks.to_dense(part, 1, 1, length)[0, 0].to(device) for part in masks.strided_parts(stride))
    parts = torch.stack([row, column, row | column]).double()  # [3, n, n]
    seen = torch.ones(length, length, dtype=torch.float64, device=device).tril()
    telling = (row | column).sum(-1) < seen.sum(-1)
    uniform = ((parts * seen).sum(-1) / seen.sum(-1))[:, telling].mean(-1)
    sums, count = {}, 0

    def add(layer: int, weights: Tensor) -> None:
        shares = torch.einsum("bhqk,pqk->bhqp", weights.double(), parts)[:, :, telling]
        sums[layer] = sums.get(layer, 0) + shares.mean(2).sum(0)

    for inputs, _ in stream.segments(length):
        if inputs.shape[1] == length:
            model(inputs.to(device), None, add)
            count += len(inputs)
    names = ("row", "column", "either")
    rows = []
    for layer, total in sums.items():
        for head, found in enumerate((total / count).tolist()):
            rows.append({"layer": layer, "head": head} | dict(zip(names, found, strict=True)))
    return pd.DataFrame(rows).assign(**{f"uniform_{name}": float(x) for name, x in zip(names, uniform, strict=True)})
