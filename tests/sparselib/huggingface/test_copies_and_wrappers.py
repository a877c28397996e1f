"""Models under control that are copied, pickled or wrapped, and arguments that are not models or batches."""

import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch
from models import diagonal, make
from small_models import made, text
from torch import nn
from torch.nn.parallel import DataParallel
from transformers import AlbertConfig, AlbertModel

from sparselib.huggingface import Sparsified, sparsify, use_attention


def albert():
    """A model whose layers share one set of weights."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "embedding_size": 16, "hidden_size": 32, "intermediate_size": 32}
    return AlbertModel(AlbertConfig(**sizes, num_attention_heads=4, num_hidden_layers=3)).eval()


def hidden(model):
    with torch.no_grad():
        return model(torch.arange(10)[None]).last_hidden_state


def saved(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


COPIES = {"torch.save": saved, "pickle": lambda model: pickle.loads(pickle.dumps(model)), "deepcopy": copy.deepcopy}
MODELS = {name: (lambda name=name: make(name).model) for name in ("bert", "gpt2", "llama")} | {"albert": albert}


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_:FutureWarning")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("how", COPIES)
def test_a_copy_computes_the_same_and_has_a_control(how, name):
    model = MODELS[name]()
    control = use_attention(model)
    if name != "albert":
        model.gradient_checkpointing_enable()
        model.disable_input_require_grads()  # its hook cannot be pickled
        model(inputs_embeds=torch.randn(1, 9, 32))  # wraps the checkpointing function
    free = hidden(model)
    with control.restricted_to(lambda call: diagonal(call)):
        restricted = hidden(model)
        inside = COPIES[how](model)
    assert torch.equal(hidden(model), free)
    for twin in (COPIES[how](model), inside):
        assert torch.equal(hidden(twin), free)
        other = next(module.sparselib_place for module in twin.modules() if hasattr(module, "sparselib_place")).control
        assert (other is control) == (how == "deepcopy")
        with other.restricted_to(diagonal):
            assert torch.equal(hidden(twin), restricted)
    if how != "deepcopy":
        with control.restricted_to(diagonal):
            assert torch.equal(hidden(twin), free)
        assert hidden(twin.train()).isfinite().all()


def test_a_control_is_pickled_with_its_model():
    model = make("bert").model
    control = use_attention(model)
    twin, other = pickle.loads(pickle.dumps((model, control)))
    with other.restricted_to(diagonal):
        restricted = hidden(twin)
    assert not torch.equal(restricted, hidden(twin))
    use_attention(twin)
    with pytest.raises(ValueError, match="use_attention gave the model another one"), other.restricted_to(diagonal):
        pass
    alone = pickle.loads(pickle.dumps(control))
    with pytest.raises(ValueError, match="its model was deleted"), alone.restricted_to(diagonal):
        pass


def test_a_saved_model_is_loaded_by_a_process_that_did_not_call_use_attention(tmp_path):
    model = make("bert").model
    use_attention(model)
    torch.save(model, tmp_path / "model.pt")
    torch.save(hidden(model), tmp_path / "output.pt")
    code = (
        "import torch, sys; model = torch.load(sys.argv[1], weights_only=False);"
        "output = model(torch.arange(10)[None]).last_hidden_state;"
        "torch.testing.assert_close(output, torch.load(sys.argv[2]))"
    )
    arguments = [sys.executable, "-c", code, tmp_path / "model.pt", tmp_path / "output.pt"]
    subprocess.run(arguments, check=True, timeout=120)


class BaseModelHolder(nn.Module):
    """Stands for a model of peft."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def get_base_model(self):
        return self.model


WRAPPERS = {
    "DataParallel": (DataParallel, r"got DataParallel; pass the model inside, `model\.module`"),
    "torch.compile": (torch.compile, r"got OptimizedModule; pass the model before torch\.compile, `model\._orig_mod`"),
    "peft": (BaseModelHolder, r"got BaseModelHolder; pass the model inside, `model\.get_base_model\(\)`"),
    "unknown": (nn.Sequential, "`model` must be a PreTrainedModel of transformers, got Sequential"),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapped_model_is_refused_by_name(name):
    wrapper, message = WRAPPERS[name]
    model = made("bert")
    with pytest.raises(ValueError, match=message):
        use_attention(wrapper(model))
    with pytest.raises(ValueError, match=message):
        sparsify(wrapper(model), text(12), recall=0.9)
    with pytest.raises(ValueError, match=message):
        Sparsified.load(wrapper(model), "folder")


def test_a_model_may_be_wrapped_afterwards():
    case = make("bert")
    control = use_attention(case.model)
    free = case()
    with control.restricted_to(diagonal):
        restricted = case()
    for wrapper in (DataParallel, BaseModelHolder):
        wrapped = wrapper(case.model)
        wrapped = case._replace(model=wrapped if wrapper is DataParallel else wrapped.get_base_model())
        with control.restricted_to(diagonal):
            assert torch.equal(wrapped(), restricted)
    compiled = case._replace(model=torch.compile(case.model, backend="eager"))
    torch.testing.assert_close(compiled(), free)
    with control.restricted_to(diagonal):
        torch.testing.assert_close(compiled(), restricted)
    torch.testing.assert_close(compiled(), free)


def test_replicas_of_data_parallel_are_refused_inside_a_block():
    """They run in threads that the block does not reach."""
    case = make("bert")
    control = use_attention(case.model)
    for module in case.model.modules():
        module._is_replica = True  # as torch.nn.parallel.replicate does on several GPUs
    case()
    with control.restricted_to(diagonal), pytest.raises(ValueError, match="do not reach the threads of DataParallel"):
        case()


BATCHES = {
    "tensors": ([torch.arange(8)[None]] * 2, r"`batches\[0\]` must be a mapping .*, got Tensor; pass \{\"input_ids\""),
    "one mapping": (text(1)[0], "`batches` must be an iterable of batches, got dict; pass a list of them"),
    "text": ("text", "`batches` must be an iterable of batches, got str; pass a list of them"),
    "lists": ([{"input_ids": [[1, 2]]}] * 2, r"`batches\[0\]\['input_ids'\]` must be a Tensor, got list"),
    "empty": ([text(1)[0], {}], r"`batches\[1\]` must be a mapping .*, got an empty one"),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches_that_are_no_mappings_of_tensors_are_refused_by_name(name):
    batches, message = BATCHES[name]
    with pytest.raises(ValueError, match=message):
        sparsify(made("bert"), batches, recall=0.9)


@pytest.mark.parametrize("inputs", [torch.arange(8)[None], [torch.arange(8)[None]], "text"])
def test_inputs_that_are_no_mapping_are_refused_by_name(inputs):
    with pytest.raises(ValueError, match=r"`inputs` must be a mapping from argument names to tensors"):
        use_attention(made("bert"), inputs=inputs)


def test_a_model_with_shared_layers_runs_after_a_refused_sparsification():
    model = albert()
    free = hidden(model)
    batches = [{name: x.flip(1) for name, x in inputs.items()} for inputs in text(12)]
    for inputs in batches:
        inputs["input_ids"].clamp_(max=49)
        inputs["attention_mask"][:, ::3] = 0
    with pytest.raises(ValueError, match="AlbertModel has no attention to sparsify"):
        sparsify(model, batches, recall=0.9)
    assert torch.equal(hidden(model), free)
