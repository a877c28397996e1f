"""Character models from settings, and files of them: settings, alphabet and weights in one safetensors file."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch

from sparselib.checks import one_of
from sparselib.entmax import entmax, topk_softmax
from sparselib.storage import read_header, read_tensors, write_tensors
from sparselib.tasks.char_lm.adaptive_span import AdaptiveSpan
from sparselib.tasks.char_lm.data import Alphabet
from sparselib.tasks.char_lm.recurrent import RecurrentModel
from sparselib.tasks.char_lm.transformer_xl import TransformerXL

ARCHITECTURES: dict[str, type[RecurrentModel]] = {"transformer_xl": TransformerXL, "adaptive_span": AdaptiveSpan}
KIND = "character model"


def build_model(settings: Mapping[str, object], vocab_size: int, seed: int) -> RecurrentModel:
    """A model with random weights.

    Parameters
    ----------
    settings : mapping
        ``{"architecture": "transformer_xl", "top_k": 8, ...}``, the rest being arguments of the class; a ``top_k`` of None is
        softmax over all visible positions.

    Raises
    ------
    ValueError
        If the architecture is unknown, ``top_k`` is below 1, or a size is out of range.
    TypeError
        If an argument of the class is missing or misspelt.
    """
    sizes = dict(settings)
    architecture, top_k = str(sizes.pop("architecture", None)), sizes.pop("top_k")
    one_of("architecture", architecture, ARCHITECTURES)
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k: {top_k} is below 1")
    normalizer = partial(entmax, alpha=1.0) if top_k is None else partial(topk_softmax, k=top_k)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return ARCHITECTURES[architecture](vocab_size, normalizer=normalizer, **sizes)


def save_model(path: str | Path, model: RecurrentModel, settings: Mapping[str, object], alphabet: Alphabet) -> None:
    write_tensors(path, model.state_dict(), kind=KIND, settings=dict(settings), symbols=list(alphabet.symbols))


def load_model(path: str | Path) -> tuple[RecurrentModel, Alphabet]:
    """A model that :func:`save_model` wrote, ready to be evaluated, on the accelerator if there is one.

    Raises
    ------
    FormatError
        If the file is truncated or is of another kind.
    """
    header = read_header(path, kind=KIND)
    alphabet = Alphabet(bytes(header["symbols"]))
    model = build_model(header["settings"], len(alphabet), seed=0)
    model.load_state_dict(read_tensors(path, kind=KIND))
    return model.to(accelerator()).eval(), alphabet


def accelerator() -> torch.device:
    return torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
