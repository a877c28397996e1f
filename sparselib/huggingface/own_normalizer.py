"""The normaliser of a model as a part of its configuration, so that a saved model is loaded with the attention of its training.

The configuration's ``entmax_alpha`` has one alpha per attention layer, and its ``attn_implementation`` is ``"entmax"``, which
``from_pretrained`` knows once this package is imported, and refuses otherwise. A model whose layers all have alpha 1, softmax,
needs neither.
"""

from collections.abc import Sequence

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from sparselib.normalizers import Entmax, Normalizer, alpha_of, entmax15

#: Name of the attention, as ``attn_implementation`` takes it.
NAME = "entmax"
#: Key of the configuration.
ALPHA = "entmax_alpha"


def own_normalizer(config: PreTrainedConfig) -> Normalizer | list[Normalizer]:
    """Return the normaliser that a configuration names, or one per layer; 1.5-entmax if it names none."""
    alphas = getattr(config, ALPHA, None)
    if alphas is None:
        return entmax15
    return normalizers(alphas)


def own_alphas(model: PreTrainedModel) -> list[float] | None:
    """Return the alpha of each layer of a model, or a single one for all; None if the model has transformers' own softmax.

    Raises
    ------
    ValueError
        If :func:`use_attention` gave the model a normaliser that is no entmax with a fixed alpha.
    """
    if model.config._attn_implementation != NAME:
        return None
    places = (getattr(module, "sparselib_place", None) for module in model.modules())
    control = next((place.control for place in places if place is not None), None)
    normalizer = own_normalizer(model.config) if control is None else control.normalizer
    return [float(alpha_of(one)) for one in (normalizer if isinstance(normalizer, Sequence) else [normalizer])]


def with_alpha(model: PreTrainedModel, alpha: float | Sequence[float] | None) -> list[float]:
    """Return the alphas to use for a model, those of every layer or a single one: its own, or the given ones if it has none.

    Raises
    ------
    ValueError
        If the given ones are not the model's own.
    """
    own = own_alphas(model)
    if alpha is None:
        return [1.0] if own is None else own
    given = [float(one) for one in (alpha if isinstance(alpha, Sequence) else [alpha])]
    if own is not None and set(own) != set(given) and own != given:
        raise ValueError(
            f"`alpha` must be that of the model's own attention, {_shown(own)}, got {_shown(given)}; leave it out"
        )
    return given


def normalizers(alphas: Sequence[float]) -> Normalizer | list[Normalizer]:
    """Return the entmax of each layer, or a single one for all."""
    each = [Entmax(alpha) for alpha in alphas]
    return each if len(set(alphas)) > 1 else each[0]


def _shown(alphas: Sequence[float]) -> str:
    return ", ".join(f"{alpha:g}" for alpha in dict.fromkeys(alphas))


def keep_normalizer(config: PreTrainedConfig, normalizer: Normalizer | Sequence[Normalizer], layers: int) -> None:
    """Write a normaliser into a configuration, or nothing for softmax and for one that is no entmax with a fixed alpha."""
    forget_normalizer(config)
    each = normalizer if isinstance(normalizer, Sequence) else [normalizer] * layers
    try:
        alphas = [float(alpha_of(one)) for one in each]
    except ValueError:
        return
    if set(alphas) != {1.0}:
        setattr(config, ALPHA, alphas)
        mark(config)


def mark(config: PreTrainedConfig) -> None:
    """Make a configuration's file name the attention; transformers leaves out what ``from_pretrained`` read."""
    config.attn_implementation = NAME


def forget_normalizer(config: PreTrainedConfig) -> None:
    """Remove a normaliser from a configuration."""
    for name in (ALPHA, "attn_implementation"):
        vars(config).pop(name, None)


def normalizer_of_module(module: nn.Module) -> Normalizer:
    """Return the normaliser of an attention module of a loaded model, which no control has numbered.

    Raises
    ------
    ValueError
        If the model's layers have several alphas, and the module does not say which layer it is.
    """
    normalizer = own_normalizer(module.config)
    if not isinstance(normalizer, list):
        return normalizer
    layer = getattr(module, "layer_idx", None)
    if layer is None:
        raise ValueError(
            f"{type(module).__name__} must have a layer_idx to find its alpha among those of {ALPHA}; call use_attention(model)"
        )
    return normalizer[layer]
