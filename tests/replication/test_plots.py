"""What figures compute before they draw."""

from itertools import combinations

import colorspacious
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex, to_rgb, to_rgba
from matplotlib.patches import Rectangle

from replication import plots
from replication.plots import matrices
from replication.plots.style import PALETTE
from sparselib import masks


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def seen(color: str, eye: str | None) -> np.ndarray:
    """A colour as an eye sees it, in a space where distances are those that people see (CAM02-UCS)."""
    rgb = np.array(to_rgb(color))
    if eye is not None:
        blind = {"name": "sRGB1+CVD", "cvd_type": eye, "severity": 100}
        rgb = np.clip(colorspacious.cspace_convert(rgb, blind, "sRGB1"), 0, 1)
    return colorspacious.cspace_convert(rgb, "sRGB1", "CAM02-UCS")


@pytest.mark.parametrize("eye", [None, "deuteranomaly", "protanomaly"])
def test_every_eye_tells_colours_of_lines_and_of_cells_apart(eye):
    for colors in (PALETTE, [matrices.LEARNED, matrices.POSITION, "white", "black"]):
        apart = {pair: np.linalg.norm(seen(pair[0], eye) - seen(pair[1], eye)) for pair in combinations(colors, 2)}
        assert min(apart.values()) > 15, min(apart, key=apart.get)
    # White paper swallows none of them.
    assert max(seen(color, eye)[0] for color in PALETTE) < 85


def test_a_figure_of_another_size_is_not_saved(tmp_path):
    for size in ((6.0, 2.0), (plots.TEXT, plots.PAGE + 1)):
        with pytest.raises(
            ValueError, match=r"wide: the figure must be 6.3 or 3.03 inches wide and at most 9.4 high, got"
        ):
            plots.save(plt.figure(figsize=size), tmp_path, "wide")
    assert list(tmp_path.iterdir()) == []


def test_cells_are_filled_where_they_are_true_and_shaded_by_their_value():
    _, axes = plt.subplots()
    cells = np.random.default_rng(0).random((7, 9)) < 0.5
    plots.fill_cells(axes, cells, "black")
    (shape,) = axes.patches
    inside = [[shape.get_path().contains_point((j, i)) for j in range(9)] for i in range(7)]
    assert np.array_equal(inside, cells)
    values = np.array([[0.0, 0.5, np.nan], [1.0, 0.5, 0.0]])
    shades = plots.shade_cells(axes, values, "Blues", (0, 1))
    for shape in axes.patches[1:]:
        mine = [values[i, j] for i in range(2) for j in range(3) if shape.get_path().contains_point((j, i))]
        assert len(set(mine)) == 1
        assert to_rgba(shades.to_rgba(mine[0]))[:3] == pytest.approx(shape.get_facecolor()[:3], abs=0.01)
    # A closed path for each of the five cells that are no NaN.
    assert sum(len(shape.get_path().vertices) for shape in axes.patches[1:]) == 5 * 5


def test_curves_are_hulls_over_a_logarithmic_share_with_a_band_over_seeds():
    """A point below the line between its neighbours is not on the curve, and seeds span the band."""
    points = pd.DataFrame({"method": "window", "sparsity": [0.9, 0.8, 0.6], "score": [1.0, 1.5, 4.0]})
    points = pd.concat([points.assign(seed=0), points.assign(seed=1, score=points["score"] + 1)])
    _, axes = plt.subplots()
    plots.tradeoff(axes, points, "score", 0.2, shown=lambda score: 10 * np.asarray(score))
    curve, gold = axes.lines
    assert np.interp(0.2, *curve.get_xydata().T) == pytest.approx(10 * 2.5)
    assert gold.get_xdata()[0] == 0.2
    assert axes.get_xscale() == "log"
    assert axes.get_xlim()[0] == pytest.approx(0.09)
    (band,) = [found for found in axes.collections if isinstance(found, PolyCollection)]
    at_gold = [y for x, y in band.get_paths()[0].vertices if x == pytest.approx(0.2)]
    assert sorted({round(y, 9) for y in at_gold}) == [20.0, 30.0]


def test_times_are_medians_with_quartiles_and_hollow_where_something_disturbed_them():
    rows = [("full", 16, "5 5 5"), ("full-kernel", 16, "4 4 4")]
    rows += [("bigbird", 2, "1 1 1.1"), ("bigbird", 4, "1 2 9"), ("bigbird", 8, "3 3 3")]
    timed = pd.DataFrame(rows, columns=["method", "count", "model_repeats"]).assign(block_size=8, clusters=0)
    _, axes = plt.subplots()
    plots.times_against_blocks(axes, timed)
    median, hollow, full = (line for line in axes.lines if line.get_linestyle() != "None" or len(line.get_xdata()) == 1)
    assert median.get_xydata().tolist() == [[2, 1000], [4, 2000], [8, 3000]]
    assert hollow.get_xydata().tolist() == [[4, 2000]]
    assert hollow.get_markerfacecolor() == "white"
    assert full.get_ydata()[0] == 4000
    (bars,) = [found for found in axes.collections if isinstance(found, LineCollection)]
    assert bars.get_segments()[1].tolist() == [[4, 1500], [4, 5500]]


def test_two_values_of_k_are_not_joined_and_methods_lie_beside_one_another():
    rows = [(method, count, 4 * [-float(count)]) for method in ("sparsefinder-v1", "bigbird") for count in (2, 22, 8)]
    points = pd.DataFrame(rows, columns=["method", "count", "score"]).explode("score").assign(seed=0)
    for counts, joined in (((2, 22), False), ((2, 8, 22), True)):
        _, axes = plt.subplots()
        shown = points[points["count"].isin(counts)].astype({"score": float})
        plots.against_blocks(axes, shown, "score", 0.0)
        curves = [
            line for line in axes.lines if len(line.get_xdata()) == len(counts) and line.get_marker() not in ("_", "|")
        ]
        first, second = (curve for curve in curves if curve.get_color() != "black")
        assert (first.get_linestyle() != "None") == joined
        assert (first.get_xdata() == second.get_xdata()).all() == joined


def test_heads_have_the_room_of_their_curves_and_name_a_gold_share_left_of_them():
    rows = pd.DataFrame({"sparsity": [0.9, 0.6, 0.5], "recall": [0.5, 0.8, 0.9]}).assign(
        method="window", layer=0, seed=0
    )
    sweep = pd.concat([rows.assign(head=head) for head in (0, 1)])
    figure = plots.head_grid(sweep, pd.DataFrame({"layer": 0, "head": [0, 1], "gold_sparsity": [0.993, 0.8]}))
    left, right = figure.axes
    assert left.get_xlim() == pytest.approx((0.09, 0.55))
    assert [text.get_text() for text in left.texts] == ["\u25c20.7"]
    assert list(right.texts) == []


@pytest.mark.parametrize("slower", [4, 8])
def test_panels_of_all_block_sizes_hold_the_slowest_times_and_zero(slower):
    methods = [("full", 16, 1.5), ("bigbird", 2, 1.5), ("bigbird", 4, 1.5)]
    points = pd.DataFrame(methods, columns=["method", "count", "alpha"]).merge(
        pd.DataFrame({"block_size": [4, 8]}), how="cross"
    )
    seconds = points["block_size"].map(lambda size: "5 5 5" if size == slower else "2 2 2")
    timed = points.assign(model_repeats=seconds, clusters=0)
    figure = plots.blocks_by_size(points[points["method"] != "full"].assign(score=-4.0, seed=0), timed, -3.0)
    figure.canvas.draw()
    bottom, top = figure.axes[0].get_ylim()
    assert figure.axes[1].get_ylim() == (bottom, top)
    assert bottom == 0
    assert top > 5000


@pytest.mark.parametrize("parts", [masks.strided_parts(3), masks.fixed_parts(3, 1)], ids=["strided", "fixed"])
def test_a_head_is_drawn_in_the_colours_of_its_own_parts(parts):
    first, second = (masks.to_dense(part, 1, 1, 9)[0, 0].numpy() for part in parts)
    ways = {"ways": np.stack([[first, second], [first | second, first]])}
    figure = plots.factorised_heads(first, second, 8, ways)
    heads = figure.axes[1:]
    assert len(heads) == 4
    blue = [
        [shape for shape in axes.patches if to_rgba(shape.get_facecolor()) == to_rgba(PALETTE[0])] for axes in heads
    ]
    filled = [
        [shape.get_path().contains_point((j, i)) for shape in shapes for i in range(9) for j in range(9)]
        for shapes in blue
    ]
    squares = [sum(isinstance(shape, Rectangle) for shape in axes.patches) for axes in heads]
    assert filled == [first.ravel().tolist(), [], first.ravel().tolist(), first.ravel().tolist()]
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
    assert titles == [f"{name}\nmedian row: {median} keys" for name, median in
                      [("Full", 4), ("Self", 1), ("Full", 2.5), ("Self", 1)]]  # fmt: skip


def test_a_picture_is_paled_region_by_region_and_white_where_nothing_attends():
    picture = np.zeros((4, 4, 3), np.uint8)
    picture[:, 2:] = (0, 0, 255)
    figure = plots.attention_over_picture(picture, {"one": np.array([[1.0, 0.0, 0.5, 0.0]])}, ["word"])
    whole, word = (_painted(axes) for axes in figure.axes)
    assert whole == {"#000000": 8, "#0000ff": 8}
    # Above on the left all of it, below half of it: a grey in the middle of black and white.
    assert word == {"#000000": 4, "#808080": 4}


def _painted(axes) -> dict[str, float]:
    """Cells of each colour, from the areas of their rectangles."""
    found = {}
    for patch in axes.patches:
        corners = patch.get_path().vertices.reshape(-1, 5, 2)[:, :4]
        sides = corners.max(axis=1) - corners.min(axis=1)
        found[to_hex(patch.get_facecolor())] = float(sides.prod(axis=1).sum())
    return found


def blocks(softmax: float) -> pd.DataFrame:
    rows = [("sparsefinder-v1", 1.5, -30.0), ("bigbird", 1.5, -32.0), ("bigbird-softmax", 1.0, softmax)]
    table = pd.DataFrame(rows, columns=["method", "alpha", "score"])
    return pd.concat([table.assign(count=count, seed=0, block_size=4) for count in (2, 8)], ignore_index=True)


def test_a_method_that_would_flatten_the_others_is_cut_off_and_marked():
    assert plots.score_floor(blocks(-32.5), "score", -29.0) is None
    floor = plots.score_floor(blocks(-90.0), "score", -29.0)
    assert -33 < floor < -32
    figure, axes = plt.subplots()
    plots.against_blocks(axes, blocks(-90.0), "score", -29.0, floor=floor)
    assert axes.get_ylim()[0] == floor
    assert axes.get_ylim()[1] > -29.0  # the upper limit still follows the data
    assert [text.get_text() for text in axes.texts] == ["-90", "-90"]
    plt.close(figure)


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "paper/../../outside"])
def test_a_figure_is_saved_nowhere_but_in_its_folder(tmp_path, name):
    figure = plt.figure(figsize=(plots.style.TEXT, 2))
    with pytest.raises(ValueError, match=f"files must be names in this folder, got {name}"):
        plots.save(figure, tmp_path / "figures", name)
