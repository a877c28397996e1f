"""Threads that share a model do not share the modes of its control."""

import contextvars
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import pytest
import torch
from models import diagonal, make
from small_models import made, text
from transformers import AlbertConfig, AlbertModel

from sparselib.huggingface import sparsify, use_attention
from sparselib.kernels import BlockMask


def together(*functions):
    """Return the results of functions that run in one thread each."""
    with ThreadPoolExecutor(len(functions)) as pool:
        futures = [pool.submit(function) for function in functions]
        return [future.result(timeout=60) for future in futures]


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "marian"])
def test_a_block_in_one_thread_leaves_other_threads_as_they_are(name):
    case = make(name)
    control = use_attention(case.model)
    free, barrier = case(), Barrier(2)
    with control.restricted_to(diagonal):
        restricted = case()

    def inside():
        with control.restricted_to(diagonal):
            barrier.wait(10)
            result = case()
            barrier.wait(10)
        return result

    def outside():
        barrier.wait(10)
        result = case()
        barrier.wait(10)
        return result

    found = together(inside, outside)
    assert torch.equal(found[0], restricted)
    assert torch.equal(found[1], free)
    assert not torch.equal(restricted, free)


def test_blocks_of_two_threads_may_overlap():
    """One thread visits blocks, which cannot be combined with the graph of the other, and leaves first."""

    def near(layer, q, k, lengths):
        return BlockMask.from_dense(torch.eye(q.shape[2], dtype=torch.bool)[None, None], 1, q.shape[2])

    case = make("gpt2")
    control = use_attention(case.model)
    with control.restricted_to(diagonal):
        restricted = case()
    barrier = Barrier(2)

    def graph():
        with control.restricted_to(diagonal):
            barrier.wait(10)
            first = case()
            barrier.wait(10)
            return first, case()

    def blocks():
        with control.visiting(near):
            barrier.wait(10)
            first = case()
        barrier.wait(10)
        return first, case()

    (first, second), (visited, free) = together(graph, blocks)
    assert torch.equal(first, restricted)
    assert torch.equal(second, restricted)
    torch.testing.assert_close(visited, restricted, atol=1e-5, rtol=1e-5)
    assert (free - restricted).abs().max() > 1e-2


def test_a_thread_runs_in_the_mode_of_a_copied_context():
    case = make("bert")
    control = use_attention(case.model)
    with control.restricted_to(diagonal), ThreadPoolExecutor(1) as pool:
        restricted = case()
        assert torch.equal(pool.submit(contextvars.copy_context().run, case).result(), restricted)


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_:FutureWarning")
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_backward_pass_in_another_thread_recomputes_the_mode_of_its_forward_pass(reentrant):
    case = make("llama")
    control = use_attention(case.model)

    def loss():
        embedded = case.model.get_input_embeddings()(case.inputs["input_ids"])
        return case.model(inputs_embeds=embedded, use_cache=False).last_hidden_state.square().sum()

    def gradients(loss):
        case.model.zero_grad()
        thread = Thread(target=loss.backward)
        thread.start()
        thread.join()
        return [weight.grad for weight in case.model.parameters() if weight.grad is not None]

    case.model.train()
    with control.restricted_to(diagonal):
        expected = gradients(loss())
        case.model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        restricted = loss()
    for found, gradient in zip(gradients(restricted), expected, strict=True):
        torch.testing.assert_close(found, gradient, atol=1e-5, rtol=1e-4)


def test_layers_with_shared_weights_take_turns_in_each_thread():
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "embedding_size": 16, "hidden_size": 32, "intermediate_size": 32}
    model = AlbertModel(AlbertConfig(**sizes, num_attention_heads=4, num_hidden_layers=3)).eval()
    control = use_attention(model)
    barrier = Barrier(2)

    def layers():
        seen = []

        def observe(call, mask):
            seen.append(call.layer)
            barrier.wait(10)

        with torch.no_grad(), control.observing(observe):
            model(torch.arange(10)[None])
        return seen

    assert together(layers, layers) == [[0, 1, 2], [0, 1, 2]]


def test_a_sparsified_model_is_entered_by_each_thread():
    model = made("gpt2")
    sparse = sparsify(model, text(12), recall=0.9, gold="entmax:1.5")
    inputs, barrier = text(1, seed=9)[0], Barrier(2)

    def output():
        with torch.no_grad():
            return model(**inputs).last_hidden_state

    free = output()
    with sparse:
        restricted = output()

    def first():
        with sparse:
            barrier.wait(10)
            barrier.wait(10)
            return output()

    def second():
        barrier.wait(10)
        with sparse:
            pass
        result = output()
        barrier.wait(10)
        return result

    found = together(first, second)
    assert torch.equal(found[0], restricted)
    assert torch.equal(found[1], free)
    assert not torch.equal(restricted, free)


def test_other_models_keep_their_attention_while_one_is_compared():
    """`use_attention` runs the model that it changes with softmax first."""
    case, other = make("bert"), make("gpt2")
    use_attention(case.model)
    expected, found = case(), []

    def run_in_a_thread(*_):
        with ThreadPoolExecutor(1) as pool:
            found.append(pool.submit(case).result())

    with other.model.h[0].register_forward_hook(run_in_a_thread):
        assert use_attention(other.model).layers == 2
    assert len(found) == 2
    assert all(torch.equal(output, expected) for output in found)
