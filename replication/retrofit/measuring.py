"""Recall and sparsity of selection rules, and the change of the model's output under each rule."""

from collections.abc import Iterable

import pandas as pd
import torch
from torch import Tensor, nn
from tqdm import tqdm
from transformers import PreTrainedModel

from replication.retrofit.rules import SelectionRule
from sparselib import metrics
from sparselib.control import AttentionControl, LayerCall
from sparselib.huggingface.gold import GoldRule

MEASURES = ("recall", "sparsity", "drift", "cosine")


@torch.no_grad()
def measure(
    model: PreTrainedModel,
    control: AttentionControl,
    rules: list[SelectionRule],
    batches: Iterable[Tensor],
    gold: GoldRule,
) -> pd.DataFrame:
    """Measure every rule on every sequence, layer and head.

    Parameters
    ----------
    model : PreTrainedModel
        The encoder.
    control : AttentionControl
        The control of its attention.
    rules : list of SelectionRule
        The rules to measure.
    batches : iterable of Tensor
        Token ids ``[B, n]`` without padding.
    gold : GoldRule
        Function that returns the edges that recall counts.

    Returns
    -------
    DataFrame
        A row per rule, sequence, layer and head. ``recall`` and ``sparsity`` are computed from the unrestricted model's queries
        and keys. ``drift`` and ``cosine`` compare the unrestricted model's last hidden states with those of the model
        restricted to the rule in all layers at once, so each layer's graph is predicted from changed inputs. ``drift`` is the
        norm of the difference, relative to the norm of the unrestricted states. ``cosine`` is the cosine similarity of the
        states' means over tokens.
    """
    parts, first = [], 0
    for ids in tqdm(list(batches), desc="rules", unit="batch", mininterval=5):
        calls: list[LayerCall] = []
        ids = ids.to(model.device)
        with control.observing(lambda call, mask, calls=calls: calls.append(call)):
            unrestricted = model(input_ids=ids).last_hidden_state
        needed = [gold(call) & call.visible for call in calls]
        for rule in rules:
            selected = [rule.graph(call) & call.visible for call in calls]
            recall = torch.stack([metrics.recall(*pair) for pair in zip(selected, needed, strict=True)], dim=1)
            sparsity = torch.stack([metrics.sparsity(mask) for mask in selected], dim=1)
            with control.restricted_to(rule.graph):
                restricted = model(input_ids=ids).last_hidden_state
            part = _rows(recall, sparsity, first).join(_changes(unrestricted, restricted, first), on="sequence")
            parts.append(part.assign(method=rule.method, setting=rule.setting, seed=rule.seed))
        first += len(ids)
    # float32 halves the file, and its seven digits exceed the precision of every measure.
    return pd.concat(parts, ignore_index=True).astype(dict.fromkeys(MEASURES, "float32"))


def _rows(recall: Tensor, sparsity: Tensor, first: int) -> pd.DataFrame:
    """Return a row per sequence, layer and head, from tensors ``[B, L, H]``."""
    names = ["sequence", "layer", "head"]
    index = pd.MultiIndex.from_product([range(size) for size in recall.shape], names=names)
    table = pd.DataFrame({"recall": recall.flatten().cpu(), "sparsity": sparsity.flatten().cpu()}, index).reset_index()
    return table.assign(sequence=table["sequence"] + first)


def _changes(unrestricted: Tensor, restricted: Tensor, first: int) -> pd.DataFrame:
    """Return a row per sequence, from hidden states ``[B, n, E]``."""
    unrestricted, restricted = unrestricted.double(), restricted.double()
    drift = (unrestricted - restricted).flatten(1).norm(dim=1) / unrestricted.flatten(1).norm(dim=1)
    cosine = nn.functional.cosine_similarity(unrestricted.mean(dim=1), restricted.mean(dim=1))
    index = pd.RangeIndex(first, first + len(unrestricted))
    return pd.DataFrame({"drift": drift.cpu(), "cosine": cosine.cpu()}, index)
