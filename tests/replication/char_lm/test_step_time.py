"""Steps that are timed are steps of training, of every model as many."""

import pytest
import torch
from characters import SIZES, corpus

from replication.char_lm.data import cut
from replication.char_lm.models import build_model
from replication.char_lm.step_time import step_seconds
from replication.char_lm.training import Progress, Recipe, step

DENSE = {"architecture": "matrix_transformer", "top_k": None, "length": 20, "width": 5} | SIZES
RECIPE = Recipe(steps=50, length=20, learning_rate=0.01, warmup_steps=1, clip_norm=1.0, log_every=10)


def new():
    return build_model(DENSE, len(corpus(2)[0]), seed=0)


def test_models_are_trained_as_often_as_is_timed_and_once_before():
    text, models = cut(corpus(2)[1][:401], 2, 20), {"one": new(), "other": new()}
    table = step_seconds(models, text, RECIPE, repeats=3)
    assert table["model"].tolist() == ["one", "other"]
    assert [len(cell.split()) for cell in table["step_repeats"]] == [3, 3]
    by_hand = Progress(new(), None)
    by_hand.optimizer = torch.optim.Adam(by_hand.model.parameters())
    for _ in range(4):
        step(by_hand, *text.segment(0, 20), RECIPE)
    for model in models.values():
        for name, weights in by_hand.model.state_dict().items():
            assert torch.equal(model.state_dict()[name], weights), name


def test_nothing_to_time_is_refused():
    with pytest.raises(ValueError, match="repeats"):
        step_seconds({"one": new()}, cut(corpus(2)[1][:401], 2, 20), RECIPE, repeats=0)
