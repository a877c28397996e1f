"""A model keeps the attention that it was trained with: sparsified, saved, loaded elsewhere, and in other threads."""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import (
    AutoModel,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    Trainer,
    TrainingArguments,
    pipeline,
)

from sparselib.huggingface import Sparsified, sparsify, use_attention
from sparselib.normalizers import Entmax, entmax15

SIZES = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
SETTINGS = {"recall": 0.5, "confidence": 0.5}
IDS = torch.randint(5, 60, (3, 16), generator=torch.Generator().manual_seed(0))


def encoder(spread: float = 1.0) -> BertModel:
    torch.manual_seed(0)
    return BertModel(BertConfig(**SIZES, initializer_range=spread)).eval()


def batches() -> list[dict]:
    generator = torch.Generator().manual_seed(1)
    return [{"input_ids": torch.randint(5, 60, (4, 16), generator=generator)} for _ in range(4)]


@torch.no_grad()
def hidden(model) -> torch.Tensor:
    return model(IDS).last_hidden_state


def test_sparsify_keeps_the_models_own_attention_inside_and_outside():
    """It became softmax."""
    model = encoder()
    use_attention(model, Entmax(1.3))
    trained = hidden(model)
    sparse = sparsify(model, batches(), gold="entmax:1.3", **SETTINGS)
    torch.testing.assert_close(hidden(model), trained)
    assert sparse.control.normalizer.alpha == 1.3


def test_another_alpha_than_the_models_own_is_refused(tmp_path):
    model = encoder()
    use_attention(model)
    before = hidden(model)
    with pytest.raises(
        ValueError, match=r"`alpha` must be that of the model's own attention, 1\.5, got 1; leave it out"
    ):
        sparsify(model, batches(), alpha=1.0, **SETTINGS)
    assert torch.equal(hidden(model), before)
    sparsify(encoder(), batches(), **SETTINGS).save(tmp_path)
    with pytest.raises(ValueError, match=r"`alpha` must be that of the model's own attention, 1\.5, got 1"):
        Sparsified.load(model, tmp_path)


def test_a_normalizer_without_alpha_is_named():
    model = encoder()
    use_attention(model, lambda scores: scores.softmax(-1))
    with pytest.raises(ValueError, match="alpha"):
        sparsify(model, batches(), **SETTINGS)


def test_a_sparsified_model_has_an_alpha_per_layer(tmp_path):
    model = encoder()
    use_attention(model, [Entmax(1.0), entmax15])
    trained = hidden(model)
    sparse = sparsify(model, batches(), **SETTINGS)
    torch.testing.assert_close(hidden(model), trained)
    model.save_pretrained(tmp_path)
    sparse.save(tmp_path)
    with sparse:
        restricted = hidden(model)
    again = AutoModel.from_pretrained(tmp_path).eval()
    assert again.config.entmax_alpha == [1.0, 1.5]
    loaded = Sparsified.load(again, tmp_path)
    torch.testing.assert_close(hidden(again), trained)
    with loaded:
        torch.testing.assert_close(hidden(again), restricted)


LOAD = """
import sys, torch
{line}
from transformers import AutoModel
model = AutoModel.from_pretrained(sys.argv[1]).eval()
torch.save(model(torch.load(sys.argv[1] + "/ids.pt")).last_hidden_state.detach(), sys.argv[1] + "/hidden.pt")
"""


@pytest.mark.parametrize("known", [True, False])
def test_another_process_loads_the_attention_or_refuses(tmp_path, known):
    """It loaded softmax without a word."""
    model = encoder()
    use_attention(model, Entmax(1.4))
    model.save_pretrained(tmp_path)
    torch.save(IDS, tmp_path / "ids.pt")
    script = LOAD.format(line="import sparselib.huggingface.attention" if known else "")
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    if known:
        assert done.returncode == 0, done.stderr
        torch.testing.assert_close(torch.load(tmp_path / "hidden.pt"), hidden(model))
    else:
        assert done.returncode != 0
        assert '`attn_implementation="entmax"` is not supported' in done.stderr


def test_a_pretrained_model_starts_with_entmax_by_its_name(tmp_path):
    encoder().save_pretrained(tmp_path)
    named = AutoModel.from_pretrained(tmp_path, attn_implementation="entmax").eval()
    model = encoder()
    use_attention(model, entmax15)
    torch.testing.assert_close(hidden(named), hidden(model))
    compiled = torch.compile(named)
    torch.testing.assert_close(compiled(IDS).last_hidden_state, hidden(model), atol=1e-4, rtol=1e-4)


def test_trainer_and_pipeline_keep_it(tmp_path):
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**SIZES))
    use_attention(model)
    rows = [{"input_ids": ids, "labels": label} for ids, label in zip(IDS, (0, 1, 0), strict=True)]
    arguments = TrainingArguments(str(tmp_path / "run"), max_steps=2, report_to=[], use_cpu=True, save_steps=2)
    trainer = Trainer(model, arguments, train_dataset=rows)
    trainer.train()
    model.eval()
    with torch.no_grad():
        expected = model(IDS).logits
    folder = tmp_path / "run/checkpoint-2"
    again = BertForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        torch.testing.assert_close(again(IDS).logits, expected)
    assert json.loads((folder / "config.json").read_text())["entmax_alpha"] == [1.5, 1.5]

    (answer,) = pipeline("text-classification", model=str(folder), tokenizer=_Tokens())("1")
    assert answer["score"] == pytest.approx(expected[1].softmax(-1).max().item(), abs=1e-5)


def test_an_installed_graph_is_that_of_all_threads():
    """A ``with`` block concerns its own thread, so that a server's workers were dense without a message."""
    model = encoder()
    sparse = sparsify(model, batches(), **SETTINGS)
    dense = hidden(model)
    with sparse:
        restricted = hidden(model)
    assert not torch.allclose(dense, restricted)
    with ThreadPoolExecutor(1) as workers:
        with sparse:
            torch.testing.assert_close(workers.submit(hidden, model).result(), dense)
        sparse.install()
        torch.testing.assert_close(workers.submit(hidden, model).result(), restricted)
        torch.testing.assert_close(hidden(model), restricted)
        sparse.uninstall()
        torch.testing.assert_close(workers.submit(hidden, model).result(), dense)
    found = []
    thread = threading.Thread(target=lambda: found.append(hidden(model)))
    sparse.install()
    thread.start()
    thread.join()
    torch.testing.assert_close(found[0], restricted)


def test_an_installed_graph_is_compiled_too():
    model = encoder()
    sparse = sparsify(model, batches(), **SETTINGS)
    sparse.install()
    restricted = hidden(model)
    torch.testing.assert_close(torch.compile(model)(IDS).last_hidden_state, restricted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("graph", "got"),
    [
        (lambda call: torch.ones(2, 16, 16, dtype=torch.bool), r"torch.bool \[2, 16, 16\]"),
        (lambda call: torch.ones(3, 2, 16, 8, dtype=torch.bool), r"torch.bool \[3, 2, 16, 8\]"),
        (lambda call: torch.ones(1, 3, 2, 16, 16, dtype=torch.bool), r"torch.bool \[1, 3, 2, 16, 16\]"),
        (lambda call: torch.ones(3, 2, 16, 16), r"torch.float32 \[3, 2, 16, 16\]"),
        (lambda call: torch.ones(3, 2, 16, 16, dtype=torch.long), r"torch.int64 \[3, 2, 16, 16\]"),
        (lambda call: None, "NoneType"),
    ],
)
def test_a_graph_of_another_form_is_named_with_its_layer(graph, got):
    """Sentences were taken for heads where there were as many."""
    model = encoder()
    control = use_attention(model)
    message = rf"the graph of layer 0 must be a bool tensor \[B, H, Q, K\] = \[3, 2, 16, 16\], got {got}"
    with control.restricted_to(graph), pytest.raises(ValueError, match=message):
        hidden(model)


def test_attention_that_is_replaced_inside_a_block_is_an_error():
    model = encoder()
    control = use_attention(model)
    with pytest.raises(ValueError, match="the model replaced its attention by 'eager' inside the `with` block"):
        with control.restricted_to(lambda call: call.visible):
            model.set_attn_implementation("eager")


class _Tokens:
    """Stands for a tokenizer: a text is the number of a row."""

    model_input_names = ("input_ids",)

    def __call__(self, text: str, **options: object) -> dict:
        return {"input_ids": IDS[int(text) : int(text) + 1]}

    def save_pretrained(self, folder: str) -> None:
        """Write nothing."""
