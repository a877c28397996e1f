"""Whether a Hugging Face model computes the same through another attention function: tried before anything is changed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import AttentionInterface, PreTrainedModel
from transformers.utils import ModelOutput

from sparselib.huggingface.example_inputs import guesses

#: How far outputs may be apart that add up the same in another order, as a share of the largest number.
TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.05}
_SOFTMAX = {
    torch.softmax,
    Tensor.softmax,
    torch._native_multi_head_attention,
    nn.functional.softmax,
    nn.functional.multi_head_attention_forward,
    nn.functional.scaled_dot_product_attention,
}


def compare_with_eager(
    model: PreTrainedModel, name: str, softmax: Callable, attend: Callable, inputs: Mapping[str, Tensor] | None
) -> list[nn.Module]:
    """Register ``attend`` under ``name``, set the model to it, and list the modules that call it, in order.

    Before, ``softmax`` stands there, and what the model computes is compared with what it computes with its eager attention.

    Raises ``ValueError`` if that differs, no inputs are given and none can be guessed, or a softmax of attention is taken
    anywhere else.
    """
    what = type(model).__name__
    watch = _Watch(model)
    with undisturbed(model):
        model.set_attn_implementation("eager")
        inputs, expected = _first_that_runs(model, inputs)
        AttentionInterface.register(name, watch.listing(softmax))
        try:
            model.set_attn_implementation(name)
            with watch:
                found = _run(model, inputs)
        finally:
            AttentionInterface.register(name, attend)
    if not watch.called:
        raise ValueError(f"{what} ignores the attention interface of transformers: it can't be changed")
    if watch.elsewhere:
        raise ValueError(
            f"{what} computes attention by itself in {', '.join(sorted(watch.elsewhere))}: it can't be changed"
        )
    real = inputs.get("decoder_attention_mask", inputs.get("attention_mask"))
    for path, own in expected.items():
        pair = own, found[path]
        if real is not None and real.ndim == 2 and own.shape[:2] == real.shape:
            # Padding that sees nothing attends to everything in eager attention, and to nothing here.
            pair = tuple(x[real.bool()] for x in pair)
        _check_close(f"{what}: {path}", *pair)
    return watch.called


def _check_close(what: str, own: Tensor, found: Tensor) -> None:
    # Where the model's own attention gives NaN, as some do in rows that see nothing, there is nothing to compare; NaN of ours
    # alone is farther than any tolerance.
    same = (own == found) | own.isnan()
    apart = (own.double() - found.double()).abs().masked_fill(same, 0.0)
    largest = own.double().abs().nan_to_num(0.0, 0.0, 0.0).max().item() if own.numel() else 0.0
    if apart.numel() and not apart.max().item() <= TOLERANCES[own.dtype] * max(1.0, largest):
        raise ValueError(
            f"{what} is not that of the model's eager attention, but {apart.max().item():.2g} away: it can't be changed"
        )


class _Watch(TorchFunctionMode):
    """Lists the modules that call the interface, and those called attention that take a softmax anywhere else."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.called: list[nn.Module] = []
        self.elsewhere: set[str] = set()
        self._model, self._running, self._inside = model, [], False

    def listing(self, attend: Callable) -> Callable:
        """``attend``, which adds the module to the list."""

        def listed(module, *arguments, **others):
            self.called.append(module)
            self._inside = True
            try:
                return attend(module, *arguments, **others)
            finally:
                self._inside = False

        return listed

    def __enter__(self) -> "_Watch":
        self._hooks = []
        for module in self._model.modules():
            self._hooks.append(module.register_forward_pre_hook(lambda module, _: self._running.append(module)))
            self._hooks.append(module.register_forward_hook(lambda *_: self._running.__delitem__(-1)))
        return super().__enter__()

    def __exit__(self, *error) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in _SOFTMAX and self._running and not self._inside:
            name = type(self._running[-1]).__name__
            if "attention" in name.lower() or "attn" in name.lower():
                self.elsewhere.add(name)
        return func(*args, **(kwargs or {}))


def _first_that_runs(
    model: PreTrainedModel, given: Mapping[str, Tensor] | None
) -> tuple[Mapping[str, Tensor], dict[str, Tensor]]:
    """Inputs that the model takes, those that are given or guesses, and its output for them."""
    reasons: list[Exception] = []
    for inputs in guesses(model) if given is None else [given]:
        try:
            return inputs, _run(model, inputs)
        except Exception as error:  # whatever a model raises for inputs that are not its own
            reasons.append(error)
    reason = reasons[0] if reasons else None
    what = "no inputs that could be guessed run" if given is None else "it does not run with the inputs that were given"
    advice = "; give use_attention inputs of your own" if given is None else ""
    raise ValueError(f"{type(model).__name__}: {what} ({reason}){advice}") from reason


@torch.no_grad()
def _run(model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of numbers among the outputs, by name; caches are left out."""
    torch.manual_seed(0)
    return dict(numbers(model(**inputs), "output"))


def numbers(output: object, path: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(output, Tensor):
        if output.is_floating_point():
            yield path, output
    elif isinstance(output, ModelOutput):
        for name, value in output.items():
            yield from numbers(value, name)
    elif isinstance(output, tuple | list):
        for place, value in enumerate(output):
            yield from numbers(value, f"{path}[{place}]")


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """A model in evaluation, whose mode and random numbers are afterwards as they were."""
    modes = {module: module.training for module in model.modules()}
    devices = [model.device] if model.device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices):
            model.eval()
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode
