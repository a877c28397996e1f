"""The normalisers of SparseModernBERT (Gonçalves et al. 2025, AdaSplash), whose own code needs an old transformers."""

from transformers import PreTrainedConfig

from sparselib.normalizers import Entmax, Normalizer

#: Names of alpha in published configurations, the first one that exists counts.
ALPHAS = ("initial_alpha", "alpha")


def global_entmax(config: PreTrainedConfig, alpha: float | None = None) -> list[Normalizer]:
    """Return one normaliser per layer: alpha-entmax where a layer attends to all tokens, and softmax where it has a window.

    This is SparseModernBERT's attention. Its weights have the names of ModernBERT's, so transformers' own classes load them.

    Parameters
    ----------
    config : PreTrainedConfig
        With ``layer_types``, such as a ModernBERT's.
    alpha : float, optional
        By default the configuration's ``initial_alpha`` or ``alpha``.

    Returns
    -------
    list of Normalizer
        For :func:`use_attention`.

    Raises
    ------
    ValueError
        If the configuration has no ``layer_types``, or neither it nor the call gives alpha.

    Examples
    --------
    >>> from transformers import ModernBertConfig
    >>> config = ModernBertConfig(num_hidden_layers=4, initial_alpha=1.5)
    >>> [normalizer.alpha for normalizer in global_entmax(config)]
    [1.5, 1, 1, 1.5]
    """
    if not getattr(config, "layer_types", None):
        raise ValueError(f"`config` must have layer_types, got {type(config).__name__} without")
    given = [getattr(config, name) for name in ALPHAS if getattr(config, name, None) is not None]
    if alpha is None and not given:
        raise ValueError(f"`alpha` must be given for a {type(config).__name__} without {' or '.join(ALPHAS)}")
    alpha = given[0] if alpha is None else alpha
    return [Entmax(alpha if kind == "full_attention" else 1) for kind in config.layer_types]
