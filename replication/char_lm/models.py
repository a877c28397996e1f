"""Character models from settings, and files of them: settings, alphabet and weights in one safetensors file."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch

from replication.char_lm.adaptive_span import AdaptiveSpan
from replication.char_lm.data import Alphabet
from replication.char_lm.matrix_transformer import MatrixTransformer
from replication.char_lm.recurrent import RecurrentModel
from replication.char_lm.transformer_xl import TransformerXL
from replication.files.storage import read_header, read_tensors, write_tensors
from sparselib.checks import one_of
from sparselib.forms import factorised, form
from sparselib.normalizers import Entmax, topk_softmax
from sparselib.predictors import RowWise

ARCHITECTURES: dict[str, type[RecurrentModel]] = {
    "transformer_xl": TransformerXL,
    "adaptive_span": AdaptiveSpan,
    "matrix_transformer": MatrixTransformer,
}
KIND = "character model"


def build_model(settings: Mapping[str, object], vocab_size: int, seed: int) -> RecurrentModel:
    """A model with random weights.

    Parameters
    ----------
    settings : mapping
        ``{"architecture": "transformer_xl", "top_k": 8, ...}``, the rest being arguments of the class; without ``top_k``, or
        with None, softmax over all visible positions. ``"form": "Window", "budget": 16`` restricts attention further, to one of
        ``sparselib.predictors.FORMS``, as does ``"factorised": {"pattern": "strided", "stride": 16}``, arguments of
        ``sparselib.predictors.factorised``.

    Raises
    ------
    ValueError
        If the architecture or a form is unknown, ``top_k`` is below 1, a size out of range, or two of ``top_k``, ``form`` and
        ``factorised`` are given.
    TypeError
        If an argument of the class is missing or misspelt.
    """
    sizes = dict(settings)
    architecture, top_k = str(sizes.pop("architecture", None)), sizes.pop("top_k", None)
    one_of("architecture", architecture, ARCHITECTURES)
    layers = sizes.get("layers", 0)  # if missing, the class says so
    forms = _forms(sizes.pop("form", None), sizes.pop("budget", None), sizes.pop("factorised", None), layers)
    if top_k is not None and forms is not None:
        raise ValueError("top_k, form and factorised exclude each other: a model has one of them")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k: {top_k} is below 1")
    normalizer = Entmax(1) if top_k is None else partial(topk_softmax, k=top_k)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return ARCHITECTURES[architecture](
            vocab_size, normalizer=normalizer, forms=forms or [form("Full", 1)] * layers, **sizes
        )


def _forms(
    name: str | None, budget: int | None, pattern: Mapping[str, object] | None, layers: int
) -> list[RowWise] | None:
    """A form for each layer, with random keys of its own; None if the settings name none."""
    if name is not None and pattern is not None:
        raise ValueError("form and factorised exclude each other: a model has one of them")
    if (name is None) != (budget is None):
        raise ValueError(f"form and budget belong together; got {name} and {budget}")
    if pattern is not None:
        return [factorised(**pattern, layer=layer) for layer in range(layers)]
    return None if name is None else [form(name, budget, seed=layer) for layer in range(layers)]


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
