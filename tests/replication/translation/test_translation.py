"""Translation from text to BLEU on a tiny corpus; what is interrupted, does not fit or is missing."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import torch

pytest.importorskip("replication.translation.fairseq")
from fairseq.sequence_generator import SequenceGenerator

from replication.bleu import COUNTS, corpus_bleu
from replication.corpora.parallel import write_parallel
from replication.files.notes import note
from replication.files.storage import read_tensors
from replication.graphs.replaced import ModelStudents, Replacements
from replication.graphs.shards import open_graphs
from replication.translation.data import binarize
from replication.translation.evaluation import (
    evaluate_replaced,
    extract_decoder_graphs,
    score,
    sentence_counts,
    to_text,
)
from replication.translation.fairseq import commands
from replication.translation.lengths import left_out, lengths
from replication.translation.model import load_translator
from replication.translation.saving import DERIVED, check_vocabulary, command_line
from replication.translation.training import read_log, train
from sparselib.control import LayerCall
from sparselib.dense_attention import gold_graph
from sparselib.forms.budgeted import TopKOutOfWindow
from sparselib.graphs import PredictedGraph
from sparselib.predictors import Distance, Quantization, TopK
from sparselib.projections import Projection

ARCHITECTURE = {
    f"{side}_{key}": value
    for side in ("encoder", "decoder")
    for key, value in {"layers": 1, "embed_dim": 32, "ffn_embed_dim": 32, "attention_heads": 2}.items()
}
TRAINING = {"lr": 0.01, "warmup_updates": 5, "max_tokens": 600, "dropout": 0.0, "log_interval": 5}
#: Enough to translate, see the first test.
UPDATES = 300
DICTIONARY = dict(
    zip("alpha beta gamma delta epsilon zeta".split(), "eins zwei drei vier fünf sechs".split(), strict=True)
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Words translated one by one."""
    folder = tmp_path_factory.mktemp("mt")
    rng = random.Random(0)
    for split, count in {"train": 400, "valid": 20, "test": 20}.items():
        source = [rng.choices(list(DICTIONARY), k=rng.randint(2, 9)) for _ in range(count)]
        text = {"en": [" ".join(s) for s in source], "de": [" ".join(DICTIONARY[w] for w in s) for s in source]}
        write_parallel(folder / "corpus", split, text)
    binarize(folder / "corpus", "en", "de", ["train", "valid", "test"], "spaces", 40, folder / "data", None)
    return folder


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
    bleu, signature = score(to_text(pieces, "spaces", "de"), references(data), "de")
    assert bleu > 50
    assert "tok:13a" in signature


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


def test_no_sentence_is_long_enough(translator, tmp_path):
    with pytest.raises(ValueError, match="more than 1000 pieces"):
        extract_decoder_graphs(translator, "valid", 5, 1000, 0, 100, tmp_path)


def test_the_gold_graph_gives_the_models_own_bleu(data, translator):
    nothing = Replacements({0: ModelStudents([], [])}, [], [0], "first")
    table, counts = evaluate_replaced(translator, "test", references(data), "spaces", nothing, 3, 500)
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


@pytest.mark.parametrize(
    "options",
    [{}, {"attention_form": "Top-k OOW", "attention_budget": 2}, {"attention_normalizer": "entmax_alpha"}],
    ids=str,
)
def test_training_that_was_killed_goes_on_where_it_stopped(data, tmp_path, options):
    """kill -9 in the middle of an epoch: the run after it continues from the last checkpoint, to the weights of a whole run.

    So do the models of attention forms and of normalisers.
    """
    settings = TRAINING | options | {"max_update": 60, "save_interval_updates": 5, "keep_interval_updates": 1}
    program = (
        "import sys; from pathlib import Path; from replication.translation.training import train;"
        f"train(Path({str(data / 'data')!r}), 'en', 'de', {ARCHITECTURE!r}, {settings!r}, 0, Path({str(tmp_path)!r}))"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    last = tmp_path / "checkpoints" / "checkpoint_last.pt"
    while not last.exists() and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not (tmp_path / "model.safetensors").exists()
    log = train(data / "data", "en", "de", ARCHITECTURE, settings, 0, tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    assert "Loaded checkpoint" in (tmp_path / "checkpoints" / "log.txt").read_text()
    assert isinstance(log, pd.DataFrame)
    assert log["num_updates"].max() == 60
    train(data / "data", "en", "de", ARCHITECTURE, settings, 0, tmp_path / "whole")
    resumed, whole = (
        read_tensors(folder / "model.safetensors", kind="translator") for folder in (tmp_path, tmp_path / "whole")
    )
    for name, weight in whole.items():
        torch.testing.assert_close(resumed[name], weight, rtol=0, atol=1e-5)


def weights_after(data, folder, seed=0, **changes):
    """Train twenty updates, and return the weights and the largest number of updates in the log."""
    settings = TRAINING | {"max_update": 20, "save_interval_updates": 5, "keep_interval_updates": 1} | changes
    log = train(data, "en", "de", ARCHITECTURE, settings, seed, folder)
    return read_tensors(folder / "model.safetensors", kind="translator"), log["num_updates"].max()


@pytest.mark.parametrize(
    "changes", [{"lr": 0.02}, {"dropout": 0.1}, {"attention_normalizer": "entmax15"}, {"seed": 1}], ids=str
)
def test_checkpoints_of_another_training_are_not_resumed(data, tmp_path, changes):
    weights_after(data / "data", tmp_path / "again")
    again, updates = weights_after(data / "data", tmp_path / "again", **changes)
    fresh, _ = weights_after(data / "data", tmp_path / "fresh", **changes)
    assert updates == 20
    assert all(torch.equal(again[name], fresh[name]) for name in fresh)


def test_checkpoints_of_other_data_are_not_resumed(data, tmp_path):
    weights_after(data / "data", tmp_path / "again")
    fewer = {"en": ["alpha beta"] * 50, "de": ["eins zwei"] * 50}
    for split in ("train", "valid", "test"):
        write_parallel(tmp_path / "corpus", split, fewer)
    binarize(tmp_path / "corpus", "en", "de", ["train", "valid", "test"], "spaces", 40, tmp_path / "data", None)
    again, updates = weights_after(tmp_path / "data", tmp_path / "again")
    fresh, _ = weights_after(tmp_path / "data", tmp_path / "fresh")
    assert updates == 20
    assert all(torch.equal(again[name], fresh[name]) for name in fresh)


def test_nothing_is_trained_after_the_last_update(data, tmp_path):
    """A kill between the last checkpoint and the model: the run after it writes the model of the last update."""
    first, _ = weights_after(data / "data", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    again, updates = weights_after(data / "data", tmp_path)
    assert updates == 20
    assert all(torch.equal(again[name], first[name]) for name in first)


def test_a_kill_while_a_checkpoint_is_copied_leaves_the_one_before(data, tmp_path, monkeypatch):
    settings = TRAINING | {"max_update": 20, "save_interval_updates": 5, "keep_interval_updates": 1}
    copies = 0

    def half(source, target):
        nonlocal copies
        copies += 1
        content = Path(source).read_bytes()
        Path(target).write_bytes(content[: len(content) // 2] if copies == 3 else content)
        if copies == 3:
            raise KeyboardInterrupt
        return target

    monkeypatch.setattr("shutil.copyfile", half)
    with pytest.raises(KeyboardInterrupt):
        train(data / "data", "en", "de", ARCHITECTURE, settings, 0, tmp_path)
    assert copies == 3
    torch.load(tmp_path / "checkpoints" / "checkpoint_last.pt", weights_only=True)
    assert train(data / "data", "en", "de", ARCHITECTURE, settings, 0, tmp_path)["num_updates"].max() == 20


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


def test_pairs_that_are_too_long_are_counted_and_said(data, tmp_path, capsys):
    note.cache_clear()
    counts = [max(len(line.split()) for line in lines) + 1 for lines in zip(*(
        (data / f"data/pieces/train.{language}").read_text().splitlines() for language in ("en", "de")
    ), strict=True)]  # fmt: skip
    limit = sorted(counts)[len(counts) // 2]
    settings = TRAINING | {"max_tokens": limit, "max_update": 2}
    # A validation pair that was longer stopped the training.
    assert max(lengths(data / "data", "valid", ("en", "de"))) > limit
    train(data / "data", "en", "de", ARCHITECTURE, settings, 0, tmp_path)
    longer = sum(count > limit for count in counts)
    assert left_out(data / "data", ("en", "de"), settings) == {"train": longer, "valid": 0}
    assert f"note: {longer} train pairs are longer than max_tokens ({limit})" in capsys.readouterr().err


def test_a_limit_that_no_pair_fits_is_refused_before_training(data, tmp_path):
    with pytest.raises(
        ValueError, match=r"`max_tokens` must fit a train pair of .*: the limit is 2 tokens, and the shortest"
    ):
        train(data / "data", "en", "de", ARCHITECTURE, TRAINING | {"max_tokens": 2, "max_update": 2}, 0, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_half_precision_without_a_gpu_is_refused_before_training(data, tmp_path):
    with pytest.raises(ValueError, match="`fp16` must be false on a machine without a GPU"):
        train(data / "data", "en", "de", ARCHITECTURE, TRAINING | {"fp16": True, "max_update": 2}, 0, tmp_path)
    assert not list(tmp_path.iterdir())
