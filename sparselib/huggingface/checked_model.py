"""Which models are taken, that they stay as they were after an error, and that a control still acts on its model."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from transformers import PreTrainedModel

from sparselib.control import AttentionControl
from sparselib.huggingface.own_normalizer import NAME


def check_model(model: nn.Module) -> None:
    """Raise ``ValueError`` for anything but a Hugging Face model, naming the way to the model inside a wrapper."""
    if isinstance(model, PreTrainedModel) and not hasattr(model, "_orig_mod"):
        return
    remedies = {
        "_orig_mod": "pass the model before torch.compile, `model._orig_mod`",
        "get_base_model": "pass the model inside, `model.get_base_model()`",
        "module": "pass the model inside, `model.module`",
    }
    remedy = next(
        (text for name, text in remedies.items() if hasattr(model, name)),
        "other modules can call `sparselib.attention`",
    )
    raise ValueError(f"`model` must be a PreTrainedModel of transformers, got {type(model).__name__}; {remedy}")


@contextmanager
def restored_on_error(model: PreTrainedModel) -> Iterator[None]:
    """Restore the attention and control of every part of the model if the block raises."""
    configs = {id(part.config): part.config for part in model.modules() if isinstance(part, PreTrainedModel)}
    before = [(config, dict(vars(config))) for config in configs.values()]
    places = [(module, getattr(module, "sparselib_place", None)) for module in model.modules()]
    try:
        yield
    except BaseException:
        for config, values in before:
            vars(config).clear()
            vars(config).update(values)
        for module, place in places:
            module.__dict__.pop("sparselib_place", None)
            if place is not None:
                module.sparselib_place = place
        raise


class Guard:
    """Checks with every mode that a control still acts on its model.

    It holds weak references, so that a control does not keep its model in memory, and is pickled with the model.

    Parameters
    ----------
    control : AttentionControl
    model : PreTrainedModel
    first : nn.Module, the first attention module that the model calls
    """

    def __init__(self, control: AttentionControl, model: PreTrainedModel, first: nn.Module):
        self.__setstate__((control, model, first))

    def __getstate__(self) -> tuple:
        return tuple(reference() for reference in self._references)

    def __setstate__(self, parts: tuple) -> None:
        self._references = [weakref.ref(part) if part is not None else _nothing for part in parts]

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Raise ``ValueError`` if the control does not act on its model any more."""
        control, model, first = (reference() for reference in self._references)
        if model is None or first is None:
            raise ValueError(
                "`control` must act on an existing model, but its model was deleted; call use_attention again"
            )
        if first.sparselib_place.control is not control:
            raise ValueError(
                "`control` must be the model's latest, but use_attention gave the model another one; use that control"
            )
        if (implementation := model.config._attn_implementation) != NAME:
            raise ValueError(
                f"`control` needs the attention implementation {NAME!r}, but the model's was set to {implementation!r}; "
                "call use_attention again"
            )
        yield
        # A model may replace its attention while it runs, as Whisper does for timestamps of tokens.
        if (implementation := model.config._attn_implementation) != NAME:
            raise ValueError(
                f"the model replaced its attention by {implementation!r} inside the `with` block, which then had no effect;"
                " call it without the option that does so"
            )


def _nothing() -> None:
    """Stand for a weak reference to a deleted object."""
