"""The factorised patterns of Sparse Transformers (Child et al. 2019) as attention forms."""

from sparselib import masks
from sparselib.checks import one_of
from sparselib.forms.budgeted import Positions

FACTORISED = ("strided", "fixed")


def factorised(
    pattern: str, stride: int, *, heads: str = "interleaved", summary: int | None = None, layer: int = 0
) -> Positions:
    """Return the form of one decoder layer with a factorised pattern.

    Parameters
    ----------
    pattern : ``"strided"`` or ``"fixed"``
    stride, summary : int, as in :func:`sparselib.masks.fixed_parts`; `summary` is for ``"fixed"`` only, which needs it
    heads, layer : as `how` and `layer` in :func:`sparselib.masks.combined`

    Raises
    ------
    ValueError

    Examples
    --------
    >>> x = torch.zeros(1, 1, 5, 8)
    >>> factorised("fixed", 2, summary=1, heads="merged").predict(x, x, causal=True)[0, 0, 4].int()
    tensor([0, 1, 0, 1, 1], dtype=torch.int32)
    """
    one_of("pattern", pattern, FACTORISED)
    if (summary is None) == (pattern == "fixed"):
        raise ValueError(f"`summary` must be given for fixed and left out for strided, got {summary} for {pattern}")
    parts = masks.strided_parts(stride) if summary is None else masks.fixed_parts(stride, summary)
    return Positions(masks.combined(parts, heads, layer))
