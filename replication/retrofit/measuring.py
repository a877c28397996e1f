"""What a model's heads need of what a rule gives them, and how far its output moves when it is held to that."""

from collections.abc import Iterable

import pandas as pd
import torch
from torch import Tensor, nn
from tqdm import tqdm
from transformers import PreTrainedModel

from replication.retrofit.rules import Rule
from sparselib import metrics
from sparselib.control import AttentionControl, LayerCall
from sparselib.huggingface.gold import GoldRule

MEASURES = ("recall", "sparsity", "drift", "cosine")


@torch.no_grad()
def measure(
    model: PreTrainedModel, control: AttentionControl, rules: list[Rule], batches: Iterable[Tensor], gold: GoldRule
) -> pd.DataFrame:
    """A row per rule, sequence, layer and head: ``recall`` and ``sparsity``, and ``drift`` and ``cosine`` of the sequence.

    Recall and sparsity are of the unrestricted model's queries and keys. Drift and cosine compare the output with that of the
    model held to the rule in all layers at once, where each layer's graph is predicted from what the layers below have left:
    ``drift`` is the distance of the last hidden states of all tokens over their length, ``cosine`` that of their means.

    Parameters
    ----------
    batches : sequences of ids ``[B, n]`` without padding
    """
    parts, first = [], 0
    for ids in tqdm(list(batches), desc="rules", unit="batch", mininterval=5):
        calls: list[LayerCall] = []
        ids = ids.to(model.device)
        with control.observing(lambda call, mask, calls=calls: calls.append(call)):
            own = model(input_ids=ids).last_hidden_state
        needed = [gold(call) & call.visible for call in calls]
        for rule in rules:
            given = [rule.graph(call) & call.visible for call in calls]
            recall = torch.stack([metrics.recall(*pair) for pair in zip(given, needed, strict=True)], dim=1)
            sparsity = torch.stack([metrics.sparsity(mask) for mask in given], dim=1)
            with control.restricted_to(rule.graph):
                moved = model(input_ids=ids).last_hidden_state
            part = _rows(recall, sparsity, first).join(_moved(own, moved, first), on="sequence")
            parts.append(part.assign(method=rule.method, setting=rule.setting, seed=rule.seed))
        first += len(ids)
    # Half the size on disk; seven digits are more than anything here has.
    return pd.concat(parts, ignore_index=True).astype(dict.fromkeys(MEASURES, "float32"))


def _rows(recall: Tensor, sparsity: Tensor, first: int) -> pd.DataFrame:
    """From ``[B, L, H]`` twice."""
    names = ["sequence", "layer", "head"]
    index = pd.MultiIndex.from_product([range(size) for size in recall.shape], names=names)
    table = pd.DataFrame({"recall": recall.flatten().cpu(), "sparsity": sparsity.flatten().cpu()}, index).reset_index()
    return table.assign(sequence=table["sequence"] + first)


def _moved(own: Tensor, moved: Tensor, first: int) -> pd.DataFrame:
    """From hidden states ``[B, n, E]`` twice: a row per sequence."""
    own, moved = own.double(), moved.double()
    drift = (own - moved).flatten(1).norm(dim=1) / own.flatten(1).norm(dim=1)
    cosine = nn.functional.cosine_similarity(own.mean(dim=1), moved.mean(dim=1))
    index = pd.RangeIndex(first, first + len(own))
    return pd.DataFrame({"drift": drift.cpu(), "cosine": cosine.cpu()}, index)
