"""Character models from settings, and their files: settings, alphabet and weights in one safetensors file."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch

from replication.char_lm.adaptive_span import AdaptiveSpan
from replication.char_lm.data import Alphabet
from replication.char_lm.matrix_transformer import MatrixTransformer
from replication.char_lm.recurrent import RecurrentModel
from replication.char_lm.transformer_xl import TransformerXL
from replication.files.contents import load_weights
from replication.files.storage import read_header, read_tensors, write_tensors
from sparselib.checks import at_least, one_of
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
    """Build a model with random weights.

    Parameters
    ----------
    settings : mapping
        ``architecture`` is one of :data:`ARCHITECTURES`, and its class takes the keys that are not listed here. ``top_k`` keeps
        the k largest weights; without it, or with None, attention is softmax over all visible positions. ``form`` and
        ``budget`` restrict attention to a form (:func:`sparselib.forms.form`), ``factorised`` to a factorised pattern, whose
        arguments it has (:func:`sparselib.forms.factorised`).
    vocab_size : int
        Number of symbol ids.
    seed : int
        Seed of the weights; the global generator stays as it is.

    Raises
    ------
    ValueError
        If the architecture or a form is unknown, ``top_k`` is below 1, a size is out of range, or more than one of ``top_k``,
        ``form`` and ``factorised`` is given.
    TypeError
        If an argument of the class is missing or misspelt.
    """
    sizes = dict(settings)
    architecture, top_k = str(sizes.pop("architecture", None)), sizes.pop("top_k", None)
    one_of("architecture", architecture, ARCHITECTURES)
    layers = sizes.get("layers", 0)  # if it is missing, the class raises
    forms = _forms(sizes.pop("form", None), sizes.pop("budget", None), sizes.pop("factorised", None), layers)
    if top_k is not None and forms is not None:
        raise ValueError("`top_k`, `form` and `factorised` exclude each other; give one of them")
    if top_k is not None:
        at_least("top_k", top_k, 1)
    normalizer = Entmax(1) if top_k is None else partial(topk_softmax, k=top_k)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return ARCHITECTURES[architecture](
            vocab_size, normalizer=normalizer, forms=forms or [form("Full", 1)] * layers, **sizes
        )


def _forms(
    name: str | None, budget: int | None, pattern: Mapping[str, object] | None, layers: int
) -> list[RowWise] | None:
    """Return a form for each layer, with its own random keys, or None if the settings name none."""
    if name is not None and pattern is not None:
        raise ValueError("`form` and `factorised` exclude each other; give one of them")
    if (name is None) != (budget is None):
        raise ValueError(f"`form` and `budget` must be given together, got {name} and {budget}")
    if pattern is not None:
        return [factorised(**pattern, layer=layer) for layer in range(layers)]
    return None if name is None else [form(name, budget, seed=layer) for layer in range(layers)]


def save_model(path: str | Path, model: RecurrentModel, settings: Mapping[str, object], alphabet: Alphabet) -> None:
    """Write a model with its settings and alphabet."""
    write_tensors(path, model.state_dict(), kind=KIND, settings=dict(settings), symbols=list(alphabet.symbols))


def load_model(path: str | Path) -> tuple[RecurrentModel, Alphabet]:
    """Read a model of :func:`save_model` in evaluation mode, onto the accelerator if there is one.

    Raises
    ------
    FormatError
        If the file is truncated or does not contain a character model.
    """
    header = read_header(path, kind=KIND)
    alphabet = Alphabet(bytes(header["symbols"]))
    model = build_model(header["settings"], len(alphabet), seed=0)
    load_weights(model, path, read_tensors(path, kind=KIND))
    return model.to(accelerator()).eval(), alphabet


def accelerator() -> torch.device:
    """Return the accelerator if there is one, else the CPU."""
    return torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
