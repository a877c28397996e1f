"""The factorised patterns of Sparse Transformers (Child et al. 2019) by their names and numbers, as predictors of a layer."""

from sparselib import masks
from sparselib.checks import one_of
from sparselib.forms.budgeted import Positions

FACTORISED = ("strided", "fixed")


def factorised(
    pattern: str, stride: int, *, heads: str = "interleaved", summary: int | None = None, layer: int = 0
) -> Positions:
    """What the heads of one layer of a decoder attend to.

    Parameters
    ----------
    pattern : "strided" or "fixed"
    stride : the paper's l, in positions
    heads : one of ``masks.HEAD_COMBINATIONS``
    summary : the paper's c, the columns of each block of ``fixed`` that later blocks see; the strided pattern has none

    Raises ``ValueError`` if a name is unknown, a number out of range, or ``summary`` missing or given to strided.

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
        raise ValueError(f"summary: fixed needs one and strided has none; got {summary} for {pattern}")
    parts = masks.strided_parts(stride) if summary is None else masks.fixed_parts(stride, summary)
    return Positions(masks.combined(parts, heads, layer))
