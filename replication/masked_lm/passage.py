"""A passage with the gold graphs of all heads, their projected queries and keys, and centroids, for the attention explorer."""

from base64 import b64encode
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from sparselib.control import AttentionControl
from sparselib.projections import Batch, Projection

#: Tokens of a passage at most. Keys are stored in a byte each.
LENGTH = 192
#: Clusters of the largest set of centroids that is kept, so that a page with all heads has about a megabyte.
CLUSTERS = 64


def cut(input_ids: Tensor) -> Tensor:
    """Return the beginning of a sequence ``[n]``, closed by its last token, as long sequences end with a special one.

    >>> cut(torch.arange(500))[[0, -2, -1]].tolist()
    [0, 190, 499]
    """
    return input_ids if len(input_ids) <= LENGTH else torch.cat([input_ids[: LENGTH - 1], input_ids[-1:]])


@torch.no_grad()
def passage_data(
    model: PreTrainedModel,
    control: AttentionControl,
    tokenizer: PreTrainedTokenizerFast,
    input_ids: Tensor,
    students: Sequence[tuple[Projection, dict[str, Tensor]]],
) -> dict[str, object]:
    """Run the model on a passage and return the numbers that every predicted graph follows from.

    Parameters
    ----------
    model, control
        Model with entmax (:func:`replication.masked_lm.model.load_entmax_model`).
    tokenizer : PreTrainedTokenizerFast
        Its tokenizer.
    input_ids : Tensor ``[n]``
        The passage, of at most :data:`LENGTH` tokens.
    students : sequence of tuple
        By layer, projection and centroids.

    Returns
    -------
    dict
        ``words``, ``layers``, ``heads``, ``length`` and ``dimension``; ``q`` and ``k``, ``[layers, heads, n, R]``, and by name
        ``centroids``, ``[layers, heads, C, R]``, as base64 of float32; ``counts``, the number of gold keys of each query
        ``[layers, heads, n]``, and ``keys``, these keys query by query, as base64 of bytes.
    """
    projected, counts, keys = {"q": [], "k": []}, [], []

    def store(call, mask) -> None:
        projection, _ = students[call.layer]
        batch = Batch(
            *(x.float().cpu() for x in (call.q, call.k)),
            torch.tensor([len(input_ids)]),
            False,
            control.normalizer_of(call.layer),
        )
        for name, x in (("q", batch.q), ("k", batch.k)):
            projected[name].append(projection(x)[0])
        gold = batch.gold[0]
        counts.append(gold.sum(-1))
        keys.append(gold.nonzero()[:, 2])

    with control.observing(store):
        model.base_model(input_ids[None].long().to(model.device))
    kept = [name for name in students[0][1] if int(name.rpartition("-")[2]) <= CLUSTERS]
    layers, heads, length, dimension = torch.stack(projected["q"]).shape
    return {
        "words": tokenizer.convert_ids_to_tokens(input_ids.tolist()),
        "layers": layers,
        "heads": heads,
        "length": length,
        "dimension": dimension,
        **{name: _encoded(torch.stack(vectors), np.float32) for name, vectors in projected.items()},
        "centroids": {name: _encoded(torch.stack([of[name] for _, of in students]), np.float32) for name in kept},
        "counts": _encoded(torch.stack(counts), np.uint8),
        "keys": _encoded(torch.cat(keys), np.uint8),
    }


def _encoded(values: Tensor, kind: type) -> str:
    """Return a tensor's bytes as base64."""
    return b64encode(values.numpy().astype(kind).tobytes()).decode()
