"""Compare a Hugging Face model's outputs under its eager attention and another attention function, before changing it."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from sparselib.huggingface.example_inputs import guess_inputs

#: Largest difference between outputs whose terms are added in different order, as a share of the largest output.
TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.05}
_SOFTMAX = {
    torch.softmax,
    Tensor.softmax,
    torch._native_multi_head_attention,
    nn.functional.softmax,
    nn.functional.multi_head_attention_forward,
    nn.functional.scaled_dot_product_attention,
}
#: Names of tensors that are no hidden states.
_NO_SEQUENCE = re.compile("position|pos_|mask|bias|alibi")

#: Computes attention in place of the registered function while this thread or task compares a model.
PROBE: ContextVar[Callable | None] = ContextVar("probe", default=None)


def compare_with_eager(
    model: PreTrainedModel, name: str, softmax: Callable, inputs: Mapping[str, Tensor] | None
) -> tuple[list[nn.Module], frozenset[int]]:
    """Set the model to the attention function `name`, after comparing its outputs with `softmax` and with eager attention.

    Return the modules that call the function, in order, and the numbers of the calls of cross-attention.

    Raise ``ValueError`` if outputs differ, no inputs are given and none can be guessed, or attention computes a softmax
    anywhere else.
    """
    model_name = type(model).__name__
    watch = _AttentionWatch(model)
    with preserving_state(model):
        model.set_attn_implementation("eager")
        inputs, expected = first_working_inputs(model, inputs)
        model.set_attn_implementation(name)
        before = PROBE.set(watch.recording(softmax))
        try:
            with watch:
                outputs = _run(model, inputs)
        finally:
            PROBE.reset(before)
    if not watch.called:
        raise ValueError(f"{model_name} ignores the attention interface of transformers, so it cannot be changed")
    if watch.own_softmax:
        raise ValueError(
            f"{model_name} computes attention itself in {', '.join(sorted(watch.own_softmax))}, so it cannot be changed"
        )
    real = inputs.get("decoder_attention_mask", inputs.get("attention_mask"))
    for path, eager in expected.items():
        pair = eager, outputs[path]
        if real is not None and real.ndim == 2 and eager.shape[:2] == real.shape:
            # Padding without visible keys attends to all keys in eager attention, and to none here.
            pair = tuple(x[real.bool()] for x in pair)
        _check_close(f"{model_name}: {path}", *pair)
    return watch.called, frozenset(watch.cross)


def _check_close(path: str, eager: Tensor, output: Tensor) -> None:
    """Raise ``ValueError`` if an output differs from that of eager attention by more than the tolerance."""
    # Some models' own attention gives NaN in rows without visible keys, which cannot be compared. NaN in our output alone
    # exceeds any tolerance.
    same = (eager == output) | eager.isnan()
    difference = (eager.double() - output.double()).abs().masked_fill(same, 0.0)
    largest = eager.double().abs().nan_to_num(0.0, 0.0, 0.0).max().item() if eager.numel() else 0.0
    if difference.numel() and not difference.max().item() <= TOLERANCES[eager.dtype] * max(1.0, largest):
        raise ValueError(
            f"{path} differs from the model's eager attention by {difference.max().item():.2g}, so the model cannot be changed"
        )


class _AttentionWatch(TorchFunctionMode):
    """Records the modules that call the interface, and the attention modules that compute a softmax anywhere else."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.called: list[nn.Module] = []
        self.cross: set[int] = set()
        self.own_softmax: set[str] = set()
        self._model, self._running, self._inside = model, [], False

    def recording(self, attend: Callable) -> Callable:
        """Return an `attend` that records its module."""

        def recorded(module, *arguments, **options):
            call = next((call for call in reversed(self._running) if call[0] is module), None)
            if call is None or _takes_two_sequences(*call):  # unknown inputs may be two sequences
                self.cross.add(len(self.called))
            self.called.append(module)
            self._inside = True
            try:
                return attend(module, *arguments, **options)
            finally:
                self._inside = False

        return recorded

    def __enter__(self) -> "_AttentionWatch":
        self._hooks = []
        for module in self._model.modules():
            self._hooks.append(
                module.register_forward_pre_hook(lambda *call: self._running.append(call), with_kwargs=True)
            )
            self._hooks.append(module.register_forward_hook(lambda *_: self._running.__delitem__(-1)))
        return super().__enter__()

    def __exit__(self, *error) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in _SOFTMAX and self._running and not self._inside:
            name = type(self._running[-1][0]).__name__
            if "attention" in name.lower() or "attn" in name.lower():
                self.own_softmax.add(name)
        return func(*args, **(kwargs or {}))


def _takes_two_sequences(module: nn.Module, arguments: tuple, options: Mapping[str, object]) -> bool:
    """Return whether an attention module's call has a second tensor of hidden states, to compute keys from."""
    named = dict(zip(inspect.signature(module.forward).parameters, arguments, strict=False)) | options
    sequences = [
        x
        for name, x in named.items()
        if isinstance(x, Tensor) and x.is_floating_point() and x.ndim == 3 and not _NO_SEQUENCE.search(name)
    ]
    return any(x is not sequences[0] for x in sequences)


def first_working_inputs(
    model: PreTrainedModel, given: Mapping[str, Tensor] | None
) -> tuple[Mapping[str, Tensor], dict[str, Tensor]]:
    """Return the first inputs that the model accepts, among the given or guessed ones, and its outputs for them."""
    reasons: list[Exception] = []
    for inputs in guess_inputs(model) if given is None else [given]:
        try:
            return inputs, _run(model, inputs)
        except Exception as error:  # models raise anything for unsuitable inputs
            reasons.append(error)
    reason = reasons[0] if reasons else None
    name = type(model).__name__
    if given is None:
        raise ValueError(f"`inputs` cannot be guessed for {name} ({reason}); pass inputs to use_attention") from reason
    raise ValueError(f"`inputs` must run through {name}, got an error ({reason})") from reason


@torch.no_grad()
def _run(model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the float tensors among the outputs by name, without caches."""
    torch.manual_seed(0)
    return dict(float_tensors(model(**inputs), "output"))


def float_tensors(output: object, path: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the names and float tensors of a nested output."""
    if isinstance(output, Tensor):
        if output.is_floating_point():
            yield path, output
    elif isinstance(output, ModelOutput):
        for name, value in output.items():
            yield from float_tensors(value, name)
    elif isinstance(output, tuple | list):
        for index, value in enumerate(output):
            yield from float_tensors(value, f"{path}[{index}]")


@contextmanager
def preserving_state(model: nn.Module) -> Iterator[None]:
    """Set a model to evaluation for a block, and restore its training mode and the random state afterwards."""
    modes = {module: module.training for module in model.modules()}
    devices = [model.device] if model.device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices):
            model.eval()
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode
