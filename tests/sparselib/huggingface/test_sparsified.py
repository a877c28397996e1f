"""Sparsified models: what they attend along, what is saved, and what is refused."""

import json
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import safetensors.torch
import torch
from small_models import made, output, text
from transformers import BertConfig, BertModel, FSMTConfig, FSMTForConditionalGeneration

from sparselib.huggingface import Sparsified, read_report, sparsify, use_attention
from sparselib.huggingface.saved import FILE, _checksum, read, write


def test_every_head_reaches_its_target_on_the_text_that_it_was_calibrated_on(sparse):
    _, result = sparse
    assert {(one.layer, one.head) for one in result.report.heads} == {(n, h) for n in range(2) for h in range(4)}
    for one in result.report.heads:
        assert one.recall >= one.bound >= 0.9
        assert one.sparsity >= 0.1 if one.predictor != "dense" else one.sparsity == 0
    assert result.report.sparsity == pytest.approx(np.mean([one.sparsity for one in result.report.heads]))
    assert result.report.sparsity > 0.1
    assert 0 < result.report.drift < 1
    assert str(result.report).count("\n") == 9


def test_inside_the_block_pairs_are_left_out_and_outside_the_model_is_as_it_was(sparse):
    model, result = sparse
    inputs = text(1, seed=9)[0]
    free = output(model, inputs)
    with result:
        restricted = output(model, inputs)
        with result:
            assert torch.equal(output(model, inputs), restricted)
        assert torch.equal(output(model, inputs), restricted)
    assert torch.equal(output(model, inputs), free)
    assert not torch.allclose(restricted, free, atol=1e-3)


def test_graphs_have_a_mask_per_head_also_in_a_layer_that_stays_dense():
    model = made()
    result = sparsify(model, text(60), recall=0.99, predictors=("window",))
    assert result.report.sparsity == 0
    shapes = []
    with torch.no_grad(), result.control.observing(lambda call, _: shapes.append(tuple(result.graph(call).shape))):
        model(**text(1, size=3)[0])
    assert shapes == [(3, 4, 24, 24)] * 2


def test_the_sparsity_inside_is_that_of_the_report(sparse):
    model, result = sparse
    kept, pairs = torch.zeros(2, 4), 0
    with (
        result,
        result.control.observing(lambda call, mask: kept[call.layer].add_((mask & call.visible).sum((0, 2, 3)))),
    ):
        for inputs in text(6, seed=5):
            output(model, inputs)
            real = inputs["attention_mask"].bool()
            visible = real[:, None, :] & (
                real[:, :, None]
                if model.config.model_type == "bert"
                else torch.ones(24, 24).tril().bool() & real[:, :, None]
            )
            pairs += visible.sum().item()
    told = torch.tensor([one.sparsity for one in result.report.heads]).view(2, 4)
    first = (1 - kept / pairs)[0]
    torch.testing.assert_close(first, told[0], atol=0.06, rtol=0)


def test_saved_and_loaded_it_does_the_same(sparse, tmp_path):
    model, result = sparse
    result.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    twin = made(model.config.model_type)
    again = Sparsified.load(twin, tmp_path)
    inputs = text(1, seed=9)[0]
    with again, result:
        torch.testing.assert_close(output(twin, inputs), output(model, inputs))
    assert again.report == result.report


def test_100_changes_of_a_saved_file_are_refused(tmp_path):
    """Flipped bits, missing ends, other weights."""
    model = made("bert")
    sparsify(model, text(12), recall=0.9, gold="entmax:1.5").save(tmp_path)
    dice, path = random.Random(0), tmp_path / FILE
    own = path.read_bytes()
    header = 8 + int.from_bytes(own[:8], "little")
    for number in range(96):
        changed = bytearray(own)
        place = dice.randrange(header if number % 2 else len(changed))
        if number % 3:
            changed[place] ^= 1 << dice.randrange(8)
        else:
            del changed[place:]
        path.write_bytes(bytes(changed))
        with pytest.raises(ValueError, match=r"sparsified\.safetensors"):
            Sparsified.load(model, tmp_path)
    path.write_bytes(own)
    with torch.no_grad():
        next(model.parameters())[0, 0] += 1e-3
    for other in (model, made("bert", seed=1), made("gpt2")):
        before = other.config._attn_implementation
        with pytest.raises(ValueError, match="belongs to other weights than those of this"):
            Sparsified.load(other, tmp_path)
        assert other.config._attn_implementation == before


#: Settings that change the output of the same weights.
SETTINGS = {"hidden_act": "relu", "layer_norm_eps": 1e-5, "is_decoder": True, "pad_token_id": 7}


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_same_weights_with_another_configuration_are_refused(tmp_path, setting):
    model = made("bert")
    sparsify(model, text(12), recall=0.9, gold="entmax:1.5").save(tmp_path)
    twin = BertModel(BertConfig(**model.config.to_diff_dict() | {setting: SETTINGS[setting]})).eval()
    twin.load_state_dict(model.state_dict())
    with pytest.raises(ValueError, match=rf"belongs to a model with {setting} .* instead of {SETTINGS[setting]!r}"):
        Sparsified.load(twin, tmp_path)


def test_a_model_read_from_a_folder_is_the_same_model(tmp_path):
    """Where it comes from, and whether it caches keys, changes no output."""
    model = made("bert")
    model.config.use_cache = False
    sparsify(model, text(12), recall=0.9, gold="entmax:1.5").save(tmp_path / "sparse")
    model.save_pretrained(tmp_path / "model")
    read = BertModel.from_pretrained(tmp_path / "model").eval()
    read.config.use_cache = True
    assert Sparsified.load(read, tmp_path / "sparse").report == read_report(tmp_path / "sparse")


WRONG = {
    "family": (("layers", 1, "heads", 2, "family"), "kmeanz", "layer 1, head 2: `family` must be one of dense"),
    "clusters": (("layers", 0, "heads", 0, "clusters"), -3, "layer 0, head 0: `clusters` must be a whole number"),
    "threshold": (("layers", 0, "heads", 0, "threshold"), float("nan"), "`threshold` must be a finite number"),
    "infinite threshold": (("layers", 0, "heads", 0, "threshold"), float("inf"), "`threshold` must be a finite number"),
    "negative threshold": (("layers", 0, "heads", 0, "threshold"), -1.0, "`threshold` must be a finite number"),
    "causal as text": (("layers", 0, "causal"), "no", "layer 0: `causal` must be of type bool, got 'no'"),
    "reason": (("layers", 0, "left_dense"), 1, "layer 0: `left_dense` must be of type str, got 1"),
    "confidence": (("report", "confidence"), 2.0, "`confidence` must be from 0 to 1, got 2.0"),
    "recall": (("report", "recall"), -0.5, "`recall` must be from 0 to 1"),
    "bound": (("report", "heads", 0, "bound"), 1.5, "`bound` must be from 0 to 1"),
    "together": (("report", "simultaneous"), "yes", "`simultaneous` must be of type bool"),
    "own": (("layers", 0, "heads", 0), {"family": "own", "own": {}}, "layer 0, head 0: `own` must be a predictor, got {}"),
    "another field": (("layers", 0, "heads", 1, "width"), 3, "layer 0, head 1: .*width"),
    "centroids": (
        ("layers", 0, "heads", 3), {"family": "kmeans", "clusters": 5, "top_k": 1}, "head 3: there are no centroids of 5",
    ),
    "heads": (("layers", 0, "heads"), [], "layer 0: .* must be finite with a row for each of 0 heads"),
    "layer": (("layers", 0), {}, "layer 0: must have causal, left_dense and heads"),
    "alpha": (("alpha",), "1", "`alpha` must be a number of at least 1"),
    "report": (("report", "recall"), "high", "`recall` must be of type float, got 'high'"),
    "head of the report": (("report", "heads", 0, "layer"), 0.5, "`layer` must be of type int"),
    "format": (("format",), 0, "must have format"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_impossible_values_are_refused_even_with_a_right_checksum(sparse, tmp_path, case):
    model, result = sparse
    (*path, last), value, message = WRONG[case]
    result.save(tmp_path)
    description, tensors = read(tmp_path / FILE)
    part = description
    for key in path:
        part = part[key]
    part[last] = value
    write(tmp_path, description, tensors) if case != "format" else rewritten(tmp_path / FILE, description, tensors)
    with pytest.raises(ValueError, match=rf"sparsified\.safetensors.*{message}"):
        Sparsified.load(model, tmp_path)


def test_a_direction_that_is_not_the_models_is_refused(sparse, tmp_path):
    model, result = sparse
    result.save(tmp_path)
    description, tensors = read(tmp_path / FILE)
    layer = description["layers"][1]
    layer["causal"] = not layer["causal"]
    write(tmp_path, description, tensors)
    with pytest.raises(ValueError, match=rf"layer 1: `causal` must be {not layer['causal']}, as in this model"):
        Sparsified.load(model, tmp_path)


def rewritten(path, description, tensors):
    """Write a description whose format is another one."""
    text = json.dumps(description | {"checksum": _checksum(description)})
    path.write_bytes(safetensors.torch.save(tensors, {"sparsified": text}))


def test_writers_of_one_folder_never_leave_a_mixture(tmp_path):
    """Each saves as another thread loads: any file that is there is whole, and no temporary file stays."""
    first, second = (sparsify(made("bert"), text(12), recall=recall, gold="entmax:1.5") for recall in (0.8, 0.9))
    first.save(tmp_path)
    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(lambda x=x: [x.save(tmp_path) for _ in range(15)]) for x in (first, second)]
        while not all(writer.done() for writer in writers):
            assert read_report(tmp_path).recall in (0.8, 0.9)
        for writer in writers:
            writer.result()
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_gradients_outlive_the_block_when_layers_are_checkpointed():
    model = made("gpt2")
    result = sparsify(model, text(12), recall=0.9, gold="entmax:1.5")
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    inputs = text(1, seed=3)[0]

    def gradient():
        model.zero_grad()
        with result:
            hidden = model(**inputs, use_cache=False).last_hidden_state
        hidden.square().sum().backward()
        return model.h[0].attn.c_attn.weight.grad.clone()

    expected = gradient()
    model.gradient_checkpointing_enable()
    torch.testing.assert_close(gradient(), expected)


BAD = {
    "recall": ({"recall": 1.0}, "`recall` must be between 0 and 1"),
    "recall below": ({"recall": 0.0}, "`recall` must be between 0 and 1"),
    "recall no number": ({"recall": float("nan")}, "`recall` must be between 0 and 1"),
    "confidence": ({"confidence": 1.5}, "`confidence` must be between 0 and 1"),
    "gold": ({"gold": "most"}, "`gold` must be"),
    "predictors": ({"predictors": ("guess",)}, "`predictors` must be one of distance, kmeans, window"),
    "no predictors": ({"predictors": ()}, "`predictors` must name at least one"),
    "predictors a string": ({"predictors": "kmeans"}, r"`predictors` must be a tuple of names, got 'kmeans'; pass"),
    "block": ({"block": 8.0}, "`block` must be an integer, got 8.0"),
    "dimension": ({"dimension": 2.5}, "`dimension` must be an integer, got 2.5"),
    "window": ({"window": -1}, "`window` must be at least 0, got -1"),
    "too few sequences": ({"confidence": 0.999}, "`batches` must leave at least .* sequences to calibrate with"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_named_and_the_model_is_as_it_was(case):
    settings, message = BAD[case]
    model = made("bert")
    before = model.config._attn_implementation, output(model, text(1)[0])
    with pytest.raises(ValueError, match=message):
        sparsify(model, text(8), **{"recall": 0.9, **settings})
    assert model.config._attn_implementation == before[0]
    assert torch.equal(output(model, text(1)[0]), before[1])
    assert not any(hasattr(module, "sparselib_place") for module in model.modules())


def test_a_model_that_attends_by_itself_is_refused():
    sizes = {f"{side}_{key}": 2 for side in ("encoder", "decoder") for key in ("layers", "attention_heads")}
    vocabularies = {"src_vocab_size": 60, "tgt_vocab_size": 60}
    model = FSMTForConditionalGeneration(FSMTConfig(langs=["en", "de"], d_model=32, **sizes, **vocabularies))
    with pytest.raises(ValueError, match="FSMTForConditionalGeneration ignores the attention interface"):
        sparsify(model, text(12), recall=0.9)


def test_a_model_whose_masks_say_more_than_lengths_is_refused_with_the_reason_and_is_as_it_was():
    """Padding on the left: the layers were looked at already when it was found."""
    model = made("gpt2")
    batches = [{name: x.flip(1) for name, x in inputs.items()} for inputs in text(12)]
    with pytest.raises(ValueError, match="GPT2Model has no attention to sparsify: its mask hides more than padding on"):
        sparsify(model, batches, recall=0.9)
    assert model.config._attn_implementation != "entmax"
    assert not any(hasattr(module, "sparselib_place") for module in model.modules())


def test_batches_may_be_read_once():
    """As a generator's, or a DataLoader's."""
    model = made("bert")
    expected = sparsify(model, text(12), recall=0.9, predictors=("window",)).report
    assert sparsify(model, iter(text(12)), recall=0.9, predictors=("window",)).report == expected
    assert {one.predictor.partition(" of ")[0] for one in expected.heads} <= {"window", "dense"}


def test_no_batches_are_refused():
    with pytest.raises(ValueError, match="`batches` must leave at least"):
        sparsify(made("bert"), [])


def test_numbers_of_numpy_can_be_saved(tmp_path):
    model = made("bert")
    counts = {name: np.int64(value) for name, value in (("block", 4), ("dimension", 3), ("window", 1), ("seed", 2))}
    shares = {name: np.float32(0.5) for name in ("recall", "confidence")}
    result = sparsify(model, text(12), **counts, **shares, predictors=("blocks",))
    result.save(tmp_path)
    assert Sparsified.load(model, tmp_path).report == result.report


def test_a_second_control_takes_over():
    model = made("bert")
    result = sparsify(model, text(12), recall=0.9)
    use_attention(model)
    with pytest.raises(ValueError, match="another one"), result:
        pass
