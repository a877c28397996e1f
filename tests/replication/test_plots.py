"""What figures compute before they draw."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import seaborn as sns
from matplotlib.colors import to_rgba

from replication import plots
from replication.plots.style import PALETTE
from sparselib import masks


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_the_style_is_seaborns():
    with plt.rc_context():
        plt.rcdefaults()
        plots.use_style()
        found = dict(plt.rcParams)
    theme = {**sns.plotting_context("paper"), **sns.axes_style("ticks")}
    # Ours are the two spines that no figure has; rocket is seaborn's own map of colours, and every picture names its map.
    ours = {"axes.spines.right", "axes.spines.top", "image.cmap"}
    for key in theme.keys() - ours:
        assert found[key] == (pytest.approx(theme[key]) if isinstance(theme[key], float) else theme[key]), key
    assert found["axes.prop_cycle"].by_key()["color"] == sns.color_palette("deep").as_hex()
    assert list(sns.color_palette("colorblind")) == PALETTE


@pytest.mark.parametrize("parts", [masks.strided_parts(3), masks.fixed_parts(3, 1)], ids=["strided", "fixed"])
def test_a_head_is_drawn_in_the_colours_of_its_own_parts(parts):
    first, second = (masks.to_dense(part, 1, 1, 9)[0, 0].numpy() for part in parts)
    ways = {"ways": np.stack([[first, second], [first | second, first]])}
    figure = plots.factorised_heads(first, second, 8, ways)
    heads = figure.axes[1:]
    assert len(heads) == 4
    filled = [(axes.images[0].get_array() == 2).sum() for axes in heads]
    squares = [len(axes.patches) for axes in heads]
    assert filled == [first.sum(), 0, first.sum(), first.sum()]
    assert squares == [0, second.sum(), second.sum(), 0]


def test_the_threshold_is_the_kth_largest_score_and_ties_are_selected():
    _, axes = plt.subplots()
    plots.draw_threshold(axes, np.array([0.5, 2.0, 1.0, -np.inf, 1.0, 3.0]), 3, "")
    assert axes.lines[0].get_ydata()[0] == 1.0
    colors = [to_rgba(color) for color in axes.collections[0].get_facecolors()]
    assert colors == [to_rgba(PALETTE[1])] * 4 + [to_rgba(PALETTE[0])]


def test_titles_of_forms_say_how_many_keys_a_row_keeps():
    full, diagonal = np.ones((4, 4), dtype=bool), np.eye(4, dtype=bool)
    kept = {"encoder": {"Full": full, "Self": diagonal}, "decoder": {"Full": np.tril(full), "Self": diagonal}}
    figure = plots.form_grid(np.arange(16.0).reshape(4, 4), kept)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == [f"{name}\n{mean} keys per row" for name, mean in
                      [("Full", 4.0), ("Self", 1.0), ("Full", 2.5), ("Self", 1.0)]]  # fmt: skip
