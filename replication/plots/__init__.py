"""Figures in one style, with a module per kind: captioning, curves, matrices, factorised patterns, rules, selection, times,
translation.

Functions either draw into given axes, or return a whole figure. ``style`` contains the shared settings.
"""

from replication.plots.captioning import attention_over_picture
from replication.plots.cells import fill_cells, shade_cells
from replication.plots.curves import against_blocks, head_grid, score_floor, spans_in_training, tradeoff
from replication.plots.factorised import draw_parts, draw_reach, draw_shares, factorised_heads, reach_growth, reach_key
from replication.plots.matrices import (
    draw_graph,
    draw_mask,
    draw_token_graph,
    draw_weights,
    graph_key,
    predicted_maps,
    share_map,
)
from replication.plots.rules import rules
from replication.plots.selection import draw_selected, draw_threshold, draw_values, form_grid, selected_keys
from replication.plots.style import COLUMN, PAGE, PALETTE, TEXT, legend_below, powers_of_ten, save, use_style
from replication.plots.times import blocks_by_size, scaling, times_against_blocks
from replication.plots.translation import bleu_against_budget, cross_attention_maps

__all__ = [
    "COLUMN",
    "PAGE",
    "PALETTE",
    "TEXT",
    "against_blocks",
    "attention_over_picture",
    "bleu_against_budget",
    "blocks_by_size",
    "cross_attention_maps",
    "draw_graph",
    "draw_mask",
    "draw_parts",
    "draw_reach",
    "draw_selected",
    "draw_shares",
    "draw_threshold",
    "draw_token_graph",
    "draw_values",
    "draw_weights",
    "factorised_heads",
    "fill_cells",
    "form_grid",
    "graph_key",
    "head_grid",
    "legend_below",
    "powers_of_ten",
    "predicted_maps",
    "reach_growth",
    "reach_key",
    "rules",
    "save",
    "scaling",
    "score_floor",
    "selected_keys",
    "shade_cells",
    "share_map",
    "spans_in_training",
    "times_against_blocks",
    "tradeoff",
    "use_style",
]
