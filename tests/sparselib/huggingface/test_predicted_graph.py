"""Decoding under a predicted graph: incremental beam search against teacher-forced scoring under the same graph."""

from argparse import Namespace

import pytest
import torch

pytest.importorskip("replication.translation.fairseq")
from fairseq.data import Dictionary
from fairseq.sequence_generator import SequenceGenerator

from replication.translation.fairseq.transformer import SparseTransformer, sparse_transformer
from sparselib import masks
from sparselib.control import LayerCall
from sparselib.dense_attention import gold_graph
from sparselib.graphs import PredictedGraph
from sparselib.predictors import Clustering, Distance, Hashing, Quantization, Routing, TopK
from sparselib.predictors.positional import BigBird, Longformer, Nothing
from sparselib.projections import Projection

WORDS, HEADS, LAYERS, DIMENSION = 30, 2, 2, 8
GENERATOR = torch.Generator().manual_seed(0)
CENTROIDS = torch.randn(HEADS, 4, 3, generator=GENERATOR)
PREDICTORS = {
    "distance": Distance(2.0),
    "kmeans": Clustering(CENTROIDS),
    "kmeans-2": Clustering(CENTROIDS, top_k=2),
    "quantization": Quantization(3),
    "routing": Routing(CENTROIDS),
    "reformer": Hashing(4),
    "topk": TopK(2),
    "window": Nothing(),
    "bigbird": BigBird(2),
    "longformer": Longformer(2),
}


@pytest.fixture(scope="module")
def model():
    dictionary = Dictionary()
    for word in range(WORDS):
        dictionary.add_symbol(f"w{word}")
    sizes = {
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in {
            "embed_dim": HEADS * DIMENSION,
            "layers": LAYERS,
            "attention_heads": HEADS,
            "ffn_embed_dim": 24,
        }.items()
    }
    args = Namespace(**sizes, share_all_embeddings=True, dropout=0.0)
    sparse_transformer(args)
    torch.manual_seed(1)
    model = SparseTransformer.build_model(args, Namespace(source_dictionary=dictionary, target_dictionary=dictionary))
    with torch.no_grad():
        for layer in model.decoder.layers:  # so that attention is far from uniform
            layer.self_attn.q_proj.weight.mul_(4)
            layer.self_attn.v_proj.weight.mul_(4)
    model.dictionary = dictionary
    return model.eval()


def decoder_graph(predictor, window=0, global_tokens="none"):
    generator = torch.Generator().manual_seed(5)
    projections = [
        Projection(torch.randn(HEADS, DIMENSION, 3, generator=generator) / 2, torch.zeros(HEADS, 3))
        for _ in range(LAYERS)
    ]
    return PredictedGraph(projections, [predictor] * LAYERS, window, global_tokens, causal=True)


def beam_search(model, source, beam, length=12):
    generator = SequenceGenerator([model], model.dictionary, beam, max_len_b=length, min_len=length)
    lengths = torch.full((len(source),), source.shape[1])
    return generator.generate([model], {"net_input": {"src_tokens": source, "src_lengths": lengths}})


def score(model, source, tokens):
    """Log-probability of each token, teacher-forced."""
    before = torch.cat([tokens.new_tensor([model.dictionary.eos()]), tokens[:-1]])[None]
    output = model(source[None], torch.tensor([len(source)]), before)
    return model.get_normalized_probs(output, log_probs=True)[0].gather(-1, tokens[:, None])[:, 0]


@pytest.mark.parametrize("window", [0, 3])
@pytest.mark.parametrize("name", PREDICTORS)
def test_incremental_decoding_equals_teacher_forced_scoring(model, name, window):
    predictor = PREDICTORS[name]
    # A random pattern has its own draw for every row of a batch: one sentence and one beam have one row everywhere.
    random = name in ("bigbird", "longformer")
    sentences, beam = (1, 1) if random else (3, 4)
    source = torch.randint(4, 4 + WORDS, (sentences, 6), generator=torch.Generator().manual_seed(2))
    source[:, -1] = model.dictionary.eos()
    graph = decoder_graph(predictor, window, "first")
    with torch.no_grad(), model.attention_controls["decoder"].restricted_to(graph):
        found = beam_search(model, source, beam)
        checked = 0
        for words, hypotheses in zip(source, found, strict=True):
            for hypothesis in hypotheses:
                expected = score(model, words, hypothesis["tokens"])
                assert torch.allclose(hypothesis["positional_scores"], expected, atol=1e-4)
                checked += len(expected)
    assert checked >= 12 * sentences * beam


@pytest.mark.parametrize("name", ["distance", "quantization", "window"])
def test_the_mask_changes_what_is_decoded(model, name):
    source = torch.randint(4, 4 + WORDS, (2, 6), generator=torch.Generator().manual_seed(2))
    graph = decoder_graph(PREDICTORS[name], 1)
    with torch.no_grad():
        free = beam_search(model, source, 2)
        with model.attention_controls["decoder"].restricted_to(graph):
            masked = beam_search(model, source, 2)
    assert not torch.allclose(free[0][0]["positional_scores"], masked[0][0]["positional_scores"], atol=1e-3)


def test_the_gold_graph_changes_nothing(model):
    """Proposition 1, in beam search."""
    source = torch.randint(4, 4 + WORDS, (3, 6), generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        free = beam_search(model, source, 4)
        with model.attention_controls["decoder"].restricted_to(lambda call: gold_graph(call.q, call.k, call.visible)):
            masked = beam_search(model, source, 4)
    for one, other in zip(free, masked, strict=True):
        assert [h["tokens"].tolist() for h in one] == [h["tokens"].tolist() for h in other]
        assert torch.allclose(one[0]["positional_scores"], other[0]["positional_scores"], atol=1e-5)


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_row_does_not_depend_on_later_tokens(name):
    graph = decoder_graph(PREDICTORS[name], 3, "first")
    generator = torch.Generator().manual_seed(9)
    q, k = torch.randn(2, 1, HEADS, 9, DIMENSION, generator=generator)
    visible = torch.ones(1, 1, 9, 9, dtype=torch.bool).tril()
    whole = graph(LayerCall(0, q, k, visible)) & visible
    for end in range(1, 10):
        prefix = visible[:, :, :end, :end]
        part = graph(LayerCall(0, q[:, :, :end], k[:, :, :end], prefix)) & prefix
        assert torch.equal(part, whole[:, :, :end, :end])


def test_parts_of_a_call_are_calls_of_their_sentences():
    q, k = torch.randn(2, 5, HEADS, 4, DIMENSION, generator=torch.Generator().manual_seed(2))
    visible = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    first, none, second = LayerCall(1, q[:, :, -1:], k, visible, prefix=q).split([2, 0, 3])
    assert len(none.q) == 0
    for part, rows in ((first, slice(0, 2)), (second, slice(2, 5))):
        alone = LayerCall(1, q[rows, :, -1:], k[rows], visible.expand(5, -1, -1, -1)[rows], prefix=q[rows])
        for name in ("q", "k", "visible", "prefix"):
            assert torch.equal(getattr(part, name), getattr(alone, name)), name
        assert torch.allclose(part.scores, alone.scores)
        assert torch.equal(part.gold(), alone.gold())


def test_bigbird_does_not_take_every_new_token_for_the_last():
    graph = decoder_graph(BigBird(0))
    q = k = torch.zeros(1, HEADS, 8, DIMENSION)
    visible = torch.ones(1, 1, 8, 8, dtype=torch.bool).tril()
    row = (graph(LayerCall(0, q, k, visible)) & visible)[0, 0, 6]
    assert row.nonzero()[:, 0].tolist() == [0, 5, 6]  # the first token, and a window of three without the future


def test_window_and_first_token_are_added():
    graph = decoder_graph(Nothing(), 5, "first")
    q = k = torch.zeros(1, HEADS, 7, DIMENSION)
    visible = torch.ones(1, 1, 1, 7, dtype=torch.bool)
    call = LayerCall(0, q[:, :, -1:], k, visible, prefix=q)
    assert graph(call)[0, 0, 0].nonzero()[:, 0].tolist() == [0, 4, 5, 6]
    expected = masks.to_dense(masks.union(masks.sliding_window(5), masks.global_tokens([0])), 1, 1, 7)
    assert torch.equal(graph(call), expected[:, :, -1:].expand(1, HEADS, 1, 7))


def test_a_last_global_token_cannot_be_known():
    with pytest.raises(ValueError, match="global_tokens"):
        decoder_graph(Nothing(), 0, "first_last")


@pytest.mark.parametrize("lengths", [[6, 6], [6, 3]])
def test_in_an_encoder_it_is_the_prediction_with_window_and_global_tokens(lengths):
    """Padding on the right is told by what the model lets its queries see."""
    generator = torch.Generator().manual_seed(3)
    projection = Projection(torch.randn(HEADS, DIMENSION, 3, generator=generator), torch.zeros(HEADS, 3))
    q, k = torch.randn(2, 2, HEADS, 6, DIMENSION, generator=generator)
    visible = (torch.arange(6) < torch.tensor(lengths)[:, None])[:, None, None].expand(2, 1, 6, 6)
    for predictor in (Distance(2.0), Quantization(3), BigBird(1)):
        graph = PredictedGraph([projection], [predictor], 3, "first_last")
        predicted = predictor.predict(projection(q), projection(k), lengths=torch.tensor(lengths))
        expected = masks.combine(predicted, 3, "first_last", torch.tensor(lengths))
        assert torch.equal(graph(LayerCall(0, q, k, visible)), expected)


def test_an_encoder_that_pads_on_the_left_is_refused():
    graph = PredictedGraph([lambda x: x], [Distance(2.0)])
    q = torch.zeros(1, HEADS, 4, DIMENSION)
    visible = torch.tensor([False, True, True, True]).expand(1, 1, 4, 4)
    with pytest.raises(ValueError, match="padding on the right"):
        graph(LayerCall(0, q, q, visible))


def test_what_needs_the_prefix_says_so():
    """Distance and k-means do not: a step of decoding asks for the new query only."""
    for name, predictor in PREDICTORS.items():
        assert decoder_graph(predictor).needs_prefix == (name not in ("distance", "kmeans", "kmeans-2"))
        assert not PredictedGraph([lambda x: x], [predictor]).needs_prefix  # an encoder has no steps
