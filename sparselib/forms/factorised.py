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
    pattern : str
        ``"strided"`` or ``"fixed"``.
    stride : int
        The paper's l, in positions, at least 1.
    heads : str
        One of :data:`sparselib.masks.HEAD_COMBINATIONS`.
    summary : int, optional
        The paper's c for ``"fixed"``: the columns of each block that later blocks attend to, 1 to `stride`.
    layer : int
        Number of the layer, for ``"interleaved"`` heads.

    Raises
    ------
    ValueError
        If a name is unknown, a number is out of range, or `summary` is missing for fixed or given for strided.

    Examples
    --------
    >>> x = torch.zeros(1, 1, 5, 8)
    >>> factorised("fixed", 2, summary=1, heads="merged").predict(x, x, causal=True)[0, 0].int()
    tensor([[1, 0, 0, 0, 0],
            [1, 1, 0, 0, 0],
            [0, 1, 1, 0, 0],
            [0, 1, 1, 1, 0],
            [0, 1, 0, 1, 1]], dtype=torch.int32)
    """
    one_of("pattern", pattern, FACTORISED)
    if (summary is None) == (pattern == "fixed"):
        raise ValueError(f"`summary` must be given for fixed and left out for strided, got {summary} for {pattern}")
    parts = masks.strided_parts(stride) if summary is None else masks.fixed_parts(stride, summary)
    return Positions(masks.combined(parts, heads, layer))
