"""Translation from text to BLEU on a tiny corpus, and what is missing or does not fit."""

import itertools
import shutil
from argparse import Namespace

import pytest
import torch
from word_by_word import ARCHITECTURE, TRAINING

pytest.importorskip("replication.translation.fairseq")
from fairseq.sequence_generator import SequenceGenerator

from replication.corpora.parallel import write_parallel
from replication.files.storage import read_tensors
from replication.graphs.replaced import ModelStudents, Replacements
from replication.graphs.shards import open_graphs
from replication.results.bleu import COUNTS, corpus_bleu
from replication.translation.data import binarize
from replication.translation.evaluation import (
    ceiling,
    evaluate_replaced,
    extract_decoder_graphs,
    score,
    sentence_counts,
    to_text,
)
from replication.translation.fairseq import commands
from replication.translation.fairseq.normalizers import normalizer_of
from replication.translation.model import load_translator
from replication.translation.saving import DERIVED, check_vocabulary, command_line
from replication.translation.training import read_log, train
from sparselib.control import LayerCall
from sparselib.dense_attention import gold_graph
from sparselib.forms.budgeted import TopKOutOfWindow
from sparselib.graphs import PredictedGraph
from sparselib.predictors import Distance, Quantization, TopK
from sparselib.projections import Projection

#: Enough to translate, see the first test.
UPDATES = 300


@pytest.fixture(scope="module")
def model(data):
    train(data / "data", "en", "de", ARCHITECTURE, TRAINING | {"max_update": UPDATES}, 0, data / "model")
    return data / "model"


@pytest.fixture(scope="module")
def translator(data, model):
    return load_translator(model / "model.safetensors", data / "data")


def references(data, split="test"):
    return (data / "corpus" / f"{split}.de").read_text().splitlines()


def test_it_learns_to_translate(data, translator):
    pieces = translator.translate("test", 20, 5, 1000)
    bleu, signature = score(to_text(translator, pieces), references(data), "de")
    assert bleu > 50
    assert "tok:13a" in signature


@pytest.mark.parametrize("word", ["שָׁל֖וֹם", "می‌خواهم", "▁the"])
def test_a_perfect_translation_has_100_bleu(tmp_path, word):
    lines = [f"{word} {number} {word}, {number}" for number in range(40)]
    for split in ("train", "valid", "test"):
        write_parallel(tmp_path / "corpus", split, {"en": lines, "he": lines})
    arguments = (tmp_path / "corpus", "en", "he", ["train", "valid", "test"], "moses", 40)
    binarize(*arguments, tmp_path / "data", None)
    binarize(*arguments, tmp_path / "later", tmp_path / "data")
    for data in (tmp_path / "data", tmp_path / "later"):
        train(data, "en", "he", ARCHITECTURE, TRAINING | {"max_update": 1}, 0, data / "model")
        translator = load_translator(data / "model" / "model.safetensors", data)
        assert ceiling(translator, "test", lines) == pytest.approx(100)
        # A reference that the ids do not have: nothing is compared with itself.
        assert ceiling(translator, "test", [f"lost {line}" for line in lines]) < 90


def test_a_model_trained_with_a_form_keeps_it_when_loaded(data):
    form = {"attention_form": "Top-k OOW", "attention_budget": 2}
    train(data / "data", "en", "de", ARCHITECTURE, TRAINING | form | {"max_update": 20}, 0, data / "form")
    loaded = load_translator(data / "form" / "model.safetensors", data / "data")
    assert loaded.decoder.mode.graph.forms == [TopKOutOfWindow(2)]
    assert loaded.decoder.normalizer_of(0)(torch.zeros(1, 4)).tolist() == [[0.25] * 4]
    seen = []
    with loaded.decoder.observing(lambda call, mask: seen.append(int(mask.sum(-1).max()))):
        assert len(loaded.translate("test", 3, 2, 200)) == 3
    assert max(seen) == 2


def test_learned_alphas_are_trained_saved_and_loaded(data):
    """Beam search with what was loaded: an alpha per head, away from where it began, in every place."""
    options = {"attention_normalizer": "entmax_alpha", "max_update": 40}
    train(data / "data", "en", "de", ARCHITECTURE, TRAINING | options, 0, data / "learned")
    saved = read_tensors(data / "learned" / "model.safetensors", kind="translator")
    loaded = load_translator(data / "learned" / "model.safetensors", data / "data")
    for place, name in (("encoder", "encoder.layers.0.self_attn"), ("decoder", "decoder.layers.0.self_attn"),
                        ("cross", "decoder.layers.0.encoder_attn")):  # fmt: skip
        pre_alpha = loaded.model.attention_controls[place].normalizer_of(0).pre_alpha
        assert torch.equal(pre_alpha.cpu(), saved[f"{name}.normalizer.pre_alpha"])
        assert (pre_alpha.abs() > 1e-3).all()
    before = loaded.translate("test", 3, 2, 200)
    with torch.no_grad():
        for control in loaded.model.attention_controls.values():
            control.normalizer_of(0).pre_alpha.fill_(-10)  # nearly softmax
    assert len(before) == 3
    assert loaded.translate("test", 3, 2, 200) != before


def test_hypotheses_come_in_the_order_of_the_file_whatever_the_batches(translator):
    assert translator.translate("test", 12, 2, 60) == translator.translate("test", 20, 2, 1000)[:12]


@pytest.mark.parametrize(("tokens", "sentences"), [(60, 20), (1000, 3), (60, 3)])
def test_a_batch_has_at_most_its_tokens_with_padding_and_its_sentences(translator, tokens, sentences):
    dataset = translator.dataset("test")
    batches = list(translator.batches(dataset, list(range(20)), tokens, sentences))
    sizes = [[dataset.num_tokens(index) for index in sample["id"].tolist()] for sample in batches]
    assert sum(map(len, sizes)) == 20
    assert all(len(one) <= sentences and max(one) * len(one) <= tokens for one in sizes)
    # Whatever comes next would not have fitted.
    for one, after in itertools.pairwise(sizes):
        assert len(one) == sentences or (len(one) + 1) * min(after) > tokens


@pytest.mark.parametrize("beam", [1, 3])
def test_the_search_is_fairseqs_own(translator, beam):
    """Batches in which sentences end at different steps, one after another with the same search."""
    stock = SequenceGenerator([translator.model], translator.dictionary, beam, max_len_a=2, max_len_b=10)
    expected = {}
    dataset = translator.dataset("test")
    for sample in translator.batches(dataset, list(range(20)), tokens=60):
        for index, hypotheses in zip(sample["id"].tolist(), stock.generate([translator.model], sample), strict=True):
            expected[index] = translator.dictionary.string(hypotheses[0]["tokens"])
    assert translator.translate("test", 20, beam, 60) == [expected[index] for index in range(20)]


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("batch_tokens", [200, 3000])
def test_graphs_searched_together_are_the_graphs_one_by_one(translator, beam, batch_tokens):
    """Also where they need the queries of the prefix, and where some hypotheses end long before others."""
    generator = torch.Generator().manual_seed(5)
    projection = Projection(torch.randn(2, 16, 3, generator=generator), torch.zeros(2, 3))
    graphs = [LayerCall.gold, lambda call: call.visible.expand(-1, 2, -1, -1)]
    graphs += [
        PredictedGraph([projection], [predictor], window, causal=True)
        for predictor, window in ((Distance(1.0), 0), (Quantization(2), 3), (TopK(1), 0))
    ]
    alone = []
    for graph in graphs:
        with translator.decoder.restricted_to(graph):
            # In the same batches: their longest source says how long a hypothesis may be.
            alone.append(translator.translate("test", 20, beam, batch_tokens / len(graphs)))
    assert translator.translate_along(graphs, "test", 20, beam, batch_tokens) == alone
    assert len({tuple(pieces) for pieces in alone}) == 4  # gold is full


def test_training_may_multiply_less_precisely_and_leaves_no_trace(data, monkeypatch):
    """In torch's state, nor among the options that a model is rebuilt from."""
    seen = []
    monkeypatch.setattr(commands, "train", lambda arguments: seen.append(torch.get_float32_matmul_precision()) or 1 / 0)
    options = TRAINING | {"max_update": 2, "matmul_precision": "medium"}
    with pytest.raises(ZeroDivisionError):
        train(data / "data", "en", "de", ARCHITECTURE, options, 0, data / "medium")
    assert (seen, torch.get_float32_matmul_precision()) == (["medium"], "highest")
    monkeypatch.undo()
    train(data / "data", "en", "de", ARCHITECTURE, options, 0, data / "medium")
    assert len(load_translator(data / "medium" / "model.safetensors", data / "data").translate("test", 3, 1, 200)) == 3


def test_the_log_has_a_row_per_split_and_epoch(model):
    log = read_log(model / "checkpoints" / "log.txt")
    assert set(log["split"]) == {"train", "valid"}
    assert not log.duplicated(["split", "epoch"]).any()
    train_rows = log[log["split"] == "train"].sort_values("epoch")
    assert train_rows["num_updates"].iloc[-1] == UPDATES
    assert train_rows["loss"].iloc[-1] < train_rows["loss"].iloc[0]


def test_the_kept_model_is_the_best_checkpoint_without_the_optimizer(data, model, translator):
    best = torch.load(model / "checkpoints" / "checkpoint_best.pt", weights_only=True)["model"]
    loaded = translator.model.state_dict()
    assert loaded.keys() == best.keys()
    kept = [name for name in best if not DERIVED.search(name)]
    assert {"encoder.layers.0.fc1.weight", "decoder.layers.0.fc1.weight", "decoder.output_projection.weight"} <= {*kept}
    assert all(torch.equal(loaded[name].cpu(), best[name]) for name in kept)
    assert loaded["encoder.embed_tokens.weight"].data_ptr() == loaded["decoder.output_projection.weight"].data_ptr()
    # Each weight once, in single precision, and a header of options and words.
    weights = 4 * sum(p.numel() for name, p in translator.model.named_parameters() if not DERIVED.search(name))
    assert weights < (model / "model.safetensors").stat().st_size < weights + 12_000


def test_graphs_are_those_of_the_decoder(data, translator, tmp_path):
    text = extract_decoder_graphs(translator, "valid", 5, 6, 0, 100, tmp_path)
    assert len(text) == 5
    dataset = translator.dataset("valid")
    seen = {}
    with open_graphs(tmp_path / "layer00.safetensors") as graphs:
        assert graphs.causal
        assert graphs.sequence.tolist() == text["sequence"].tolist()
        for row, index in enumerate(graphs.sequence.tolist()):
            length = int(graphs.lengths[row])
            assert length == len(dataset[index]["target"]) > 6
            assert len(text["target"][row].split()) == length - 1  # without </s>
            sample = dataset.collater([dataset[index]])
            with (
                torch.no_grad(),
                translator.decoder.observing(lambda call, mask: seen.update(q=call.q, k=call.k, mask=mask)),
            ):
                translator.model(**sample["net_input"])
            batch = graphs.batch(row, row + 1)
            assert torch.allclose(batch.q, seen["q"], atol=1e-5)
            assert torch.allclose(batch.k, seen["k"], atol=1e-5)
            assert torch.equal(batch.gold, gold_graph(seen["q"], seen["k"], seen["mask"]))


@pytest.mark.parametrize(
    ("name", "options"),
    [("entmax", {"attention_alpha": 1.25}), ("sparsemax", {}), ("entmax_alpha", {}), ("topk", {"attention_k": 2}),
     ("softmax", {}), ("sparsemax", {"attention_implementation": "entmax"})],
)  # fmt: skip
def test_stored_edges_are_those_of_the_decoders_own_normaliser(translator, tmp_path, monkeypatch, name, options):
    args = Namespace(attention_normalizer=name, **({"attention_alpha": None, "attention_k": None} | options))
    own = normalizer_of(args, translator.model.decoder.layers[0].self_attn.num_heads)
    if name == "entmax_alpha":
        own.pre_alpha.data = torch.linspace(-2, 2, len(own.pre_alpha))
    monkeypatch.setattr(translator.decoder, "normalizer", own)
    weights = []
    with torch.no_grad():
        text = extract_decoder_graphs(translator, "valid", 1, 6, 0, 1000, tmp_path)
        with open_graphs(tmp_path / "layer00.safetensors") as graphs:
            batch = graphs.batch(0, 1)
            dataset = translator.dataset("valid")
            sample = dataset.collater([dataset[int(graphs.sequence[0])]])
        with translator.decoder.observing(lambda call, mask: weights.append((call.gold(), call.normalizer))):
            translator.model(**sample["net_input"])
    assert len(text) == 1
    assert weights[0][1] is own
    assert torch.equal(batch.gold, weights[0][0])
    scores = (batch.q @ batch.k.mT / batch.q.shape[-1] ** 0.5).masked_fill(~batch.visible, -torch.inf)
    assert torch.equal(batch.gold, own(scores).detach() > 0)


def test_no_sentence_is_long_enough(translator, tmp_path):
    with pytest.raises(ValueError, match="more than 1000 pieces"):
        extract_decoder_graphs(translator, "valid", 5, 1000, 0, 100, tmp_path)


def test_the_gold_graph_gives_the_models_own_bleu(data, translator):
    nothing = Replacements({0: ModelStudents([], [])}, [], "first")
    table, counts = evaluate_replaced(translator, "test", references(data), nothing, 3, 500)
    for method, of_method in counts.groupby("method"):
        bleu = table.loc[table["method"] == method, "bleu"].item()
        assert corpus_bleu(of_method[COUNTS].to_numpy(float).sum(0)) == pytest.approx(bleu, abs=1e-9)
    assert (counts["sentence"].value_counts() == 2).all()
    table = table.set_index("method")
    assert table.loc["gold graph", "bleu"] == table.loc["full", "bleu"]
    assert table.loc["full", "sparsity"] == 0
    assert table.loc["gold graph", "sparsity"] == pytest.approx(table.loc["full", "gold_sparsity"])
    assert table.loc["gold graph", "recall"] == 1


def test_nothing_is_scored_when_hypotheses_are_missing():
    with pytest.raises(ValueError, match=r"must have one entry per reference \(3\), got 2"):
        score(["a", "b"], ["a", "b", "c"], "de")


def test_pretraining_gives_its_subwords_and_weights(data, model, tmp_path):
    corpus, output = data / "corpus", tmp_path / "data"
    binarize(corpus, "en", "de", ["train", "valid"], "spaces", 999, output, data / "data")
    assert (output / "codes.bpe").read_bytes() == (data / "data" / "codes.bpe").read_bytes()
    assert (output / "dict.de.txt").read_bytes() == (data / "data" / "dict.de.txt").read_bytes()
    log = train(
        output,
        "en",
        "de",
        ARCHITECTURE,
        TRAINING | {"max_update": 3, "lr": 1e-6},
        0,
        tmp_path / "model",
        model / "model.safetensors",
    )
    before = read_log(model / "checkpoints" / "log.txt")
    last, first = (x[x["split"] == "valid"].sort_values("epoch")["loss"] for x in (before, log))
    assert first.iloc[0] == pytest.approx(last.iloc[-1], abs=0.5)


def test_a_vocabulary_that_is_not_the_models_is_refused(data, model, tmp_path):
    other = tmp_path / "corpus"
    for split in ("train", "valid"):
        write_parallel(other, split, {"en": ["quite other words"] * 3, "de": ["ganz andere Wörter"] * 3})
    binarize(other, "en", "de", ["train", "valid"], "spaces", 10, tmp_path / "data", None)
    with pytest.raises(ValueError, match="vocabulary"):
        check_vocabulary(model / "model.safetensors", tmp_path / "data")
    with pytest.raises(ValueError, match="vocabulary"):
        load_translator(model / "model.safetensors", tmp_path / "data")
    with pytest.raises(ValueError, match="vocabulary"):
        train(tmp_path / "data", "en", "de", ARCHITECTURE, TRAINING, 0, tmp_path / "model", model / "model.safetensors")


def test_a_vocabulary_in_another_order_is_refused(data, model, tmp_path):
    """As many words, but each would get the embedding of another."""
    shutil.copytree(data / "data", tmp_path / "data")
    first, *rest = (tmp_path / "data" / "dict.de.txt").read_text().splitlines(keepends=True)
    (tmp_path / "data" / "dict.de.txt").write_text("".join([*rest, first]))
    with pytest.raises(ValueError, match=f"entry 0 must be .*{first.split()[0]}.*, got .*{rest[0].split()[0]}"):
        load_translator(model / "model.safetensors", tmp_path / "data")


def test_a_model_or_data_that_is_not_there(data, model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.safetensors"):
        load_translator(tmp_path / "none.safetensors", data / "data")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_translator(model / "model.safetensors", tmp_path / "nowhere")


def test_options_are_fairseqs():
    assert command_line({"max_epoch": 3, "share_all_embeddings": True, "fp16": False}) == [
        "--max-epoch", "3", "--share-all-embeddings",
    ]  # fmt: skip


SPACELESS = {
    "zh": ("我今天早上在公园里看到一只小狗。", "我今天早上在公园里看到一只小猫。", "tok:zh"),
    "ja": ("今朝、公園で小さな犬を見ました。", "今朝、公園で小さな猫を見ました。", "tok:char"),
    "ko": ("오늘아침공원에서작은개를보았습니다.", "오늘아침공원에서작은새를보았습니다.", "tok:char"),
}


@pytest.mark.parametrize("language", SPACELESS)
def test_languages_without_spaces_have_their_own_tokens(language):
    """With the default, a sentence would be one token, and BLEU 0."""
    hypothesis, reference, tokens = SPACELESS[language]
    bleu, signature = score([hypothesis], [reference], language)
    assert 50 < bleu < 100
    assert tokens in signature
    counts = sentence_counts([hypothesis], [reference], language)
    assert corpus_bleu(counts[COUNTS].to_numpy().sum(0)) == pytest.approx(bleu)
