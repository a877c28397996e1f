"""Figures in one style, a file for each kind: curves, matrices, times.

Functions either draw into axes that they are given, or lay out and return a whole figure; `style` holds what all share.
"""

from sparselib.plots.curves import against_blocks, head_grid, tradeoff
from sparselib.plots.matrices import draw_graph, draw_mask, draw_token_graph, draw_weights, share_map
from sparselib.plots.style import legend_below, save, use_style
from sparselib.plots.times import scaling

__all__ = [
    "against_blocks",
    "draw_graph",
    "draw_mask",
    "draw_token_graph",
    "draw_weights",
    "head_grid",
    "legend_below",
    "save",
    "scaling",
    "share_map",
    "tradeoff",
    "use_style",
]
