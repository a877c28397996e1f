"""Models sparsified with predictors of the caller: those of the guide, from a file in a folder of their own."""

import re
from functools import partial
from pathlib import Path

import pytest
import torch
from small_models import MODELS, made, output, text

from replication.predictors.own_predictors import own_class
from sparselib.huggingface import sparsify
from sparselib.masks import combine
from sparselib.masks.visible import causal_and_lengths
from sparselib.predictors import Hashing, Quantization

GUIDE = Path(__file__).parents[3] / "docs" / "add-a-predictor.md"
WINDOW = 3


@pytest.fixture(scope="module")
def predictors(tmp_path_factory):
    """The guide's two classes."""
    file = tmp_path_factory.mktemp("outside") / "mine.py"
    file.write_text("\n\n".join(re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[:2]))
    return [own_class(f"{file}:{name}") for name in ("LongKeys", "NearEnough")]


@pytest.fixture(scope="module", params=MODELS)
def sparse(request, predictors):
    """A sparsified model, and each layer's batches that its predictors were fitted to."""
    long, near = predictors
    fitted = []

    def fit(recall, batches, projection, seed):
        fitted.append((projection, list(batches)))
        return near.fit(fitted[-1][1], projection, seed, recall=recall)

    own = [long(2.0), long(1.0), partial(fit, 0.93), partial(fit, 0.97)]
    result = sparsify(made(request.param), text(12), gold="entmax:1.5", recall=0.9, predictors=own, window=WINDOW)
    return result, fitted


def test_heads_reach_their_target_with_them(sparse):
    result, _ = sparse
    names = {head.predictor.partition("(")[0] for head in result.report.heads}
    assert "NearEnough" in names <= {"LongKeys", "NearEnough", "dense"}
    for head in result.report.heads:
        assert head.recall >= head.bound >= 0.9
        assert head.sparsity >= 0.1 if head.predictor != "dense" else head.sparsity == 0


def test_they_are_fitted_to_each_layers_batches_with_gold_edges(sparse):
    _, fitted = sparse
    assert len(fitted) == 4  # two layers, two functions
    for (projection, batches), again in zip(fitted[::2], fitted[1::2], strict=True):
        assert projection is again[0]
        assert sum(len(batch.q) for batch in batches) == 60  # half of the text
        for batch in batches:
            scores = batch.q @ batch.k.mT
            assert scores[batch.gold].mean() > scores[batch.visible.expand_as(scores) & ~batch.gold].mean()
    assert not torch.equal(fitted[0][1][0].q, fitted[2][1][0].q)


def test_heads_attend_along_their_pairs(sparse):
    result, _ = sparse
    calls = []
    inputs = text(1, seed=5)[0]
    with torch.no_grad(), result.control.observing(lambda call, _: calls.append(call)):
        result.model(**inputs)
    for call, layer in zip(calls, result._layers, strict=True):
        q, k = layer.projection(call.q), layer.projection(call.k)
        causal, lengths = causal_and_lengths(call.visible)
        for head, setting in enumerate(layer.chosen):
            if setting.family == "own":
                pairs = setting.own.predictor.predict(q, k, lengths=lengths, causal=causal)
                expected = combine(pairs, WINDOW, "none", lengths, causal)[:, head]
                real = call.visible[:, 0] & call.visible[:, 0, -1:].mT if causal else call.visible[:, 0]
                assert torch.equal(result.graph(call)[:, head] & real, expected & real)


def test_they_compete_with_the_librarys(predictors):
    _, near = predictors
    own = partial(near.fit, recall=0.95)
    settings = {"gold": "entmax:1.5", "recall": 0.9}
    together, own, alone = (
        sparsify(made(), text(12), **settings, predictors=names).report.sparsity
        for names in ((own, "distance"), (own,), ("distance",))
    )
    assert together >= max(own, alone) - 0.02  # chosen on the other half of the text


def test_the_output_can_be_guaranteed_with_them(predictors):
    long, near = predictors

    def the_direction(dense, sparse, batch):
        return (torch.cosine_similarity(dense.pooler_output, sparse.pooler_output) < 0.8).float()

    own = (long(0.5), *(partial(near.fit, recall=recall) for recall in (0.98, 0.995)))
    result = sparsify(made(), text(12), gold="entmax:1.5", loss=the_direction, risk=0.4, predictors=own)
    assert result.report.output.chosen.sparsity > 0
    assert any("NearEnough" in head.predictor for head in result.report.heads)


def test_a_decoder_continues_with_them(predictors):
    long, near = predictors
    own = (long(1.0), partial(near.fit, recall=0.95))
    result = sparsify(made("gpt2"), text(12), gold="entmax:1.5", recall=0.9, predictors=own)
    ids = text(1, seed=5)[0]["input_ids"]
    with torch.no_grad(), result:
        whole = result.model(input_ids=ids).last_hidden_state
        start = result.model(input_ids=ids[:, :-1], use_cache=True)
        last = result.model(input_ids=ids[:, -1:], past_key_values=start.past_key_values).last_hidden_state
    torch.testing.assert_close(last, whole[:, -1:], atol=1e-5, rtol=1e-4)
    assert result.report.sparsity > 0


def test_what_cannot_work_is_refused(sparse, predictors, tmp_path):
    result, _ = sparse
    with pytest.raises(ValueError, match=r"`folder` cannot take predictors of your own \(.*NearEnough"):
        result.save(tmp_path)
    with pytest.raises(ValueError, match="`predictors` must not include distance or your own for blocks, but these"):
        result.to_blocks(8)
    long, _ = predictors
    for wrong, message in (
        (long, "must be names, predictors or functions that fit one, got <class"),
        (3, "must be names, predictors or functions that fit one, got 3"),
        (lambda *learned: 3, "must be or return predictors, got int"),
    ):
        with pytest.raises(ValueError, match=f"`predictors` {message}"):
            sparsify(made(), text(8), recall=0.9, predictors=("window", wrong))
    with pytest.raises(ValueError, match="`predictors` must be blocks alone"):
        sparsify(made(), text(8), recall=0.9, predictors=("blocks", long(1.0)))
    before = output(model := made("gpt2"), text(1)[0])
    for whole in (Hashing(4), Quantization(3)):
        with pytest.raises(ValueError, match=rf"alone in a decoder, but {type(whole).__name__} needs the whole prefix"):
            sparsify(model, text(8), recall=0.9, predictors=(whole,))
    assert torch.equal(output(model, text(1)[0]), before)
