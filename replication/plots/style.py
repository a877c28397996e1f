"""Style shared by all figures: print widths, colours distinguishable with colour blindness, and vector files."""

import math
import re
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib import rc_params_from_file
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from replication.files.names import place_within
from replication.files.storage import replacing

STYLE = Path(__file__).parent / "print.mplstyle"
#: Text width, column width and page height of the ACL style, in inches.
TEXT, COLUMN, PAGE = 6.3, 3.03, 9.4
#: Characters of a path that is no marker or tick, whose shape needs more decimals.
LONG = 200
#: Colours of successive lines.
PALETTE = rc_params_from_file(STYLE, use_default_template=False)["axes.prop_cycle"].by_key()["color"]
BLUE, VERMILLION, YELLOW, GREEN, BROWN, INDIGO, SKY, GREY = PALETTE


def use_style() -> None:
    """Apply the style to all following figures, in place of the settings of a user's ``matplotlibrc``."""
    plt.style.use(["default", STYLE])


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as ``name.svg`` and ``name.pdf``, without dates, so that equal figures give equal files.

    Raises
    ------
    ValueError
        If the figure has neither text nor column width, or is higher than a page, or its name leads out of the folder.
    """
    place_within(folder, name)
    width, height = figure.get_size_inches()
    if width not in (TEXT, COLUMN) or height > PAGE:
        raise ValueError(
            f"{name}: the figure must be {TEXT} or {COLUMN} inches wide and at most {PAGE} high, got {width:g} by {height:g}"
        )
    # Compute the layout once, for all formats and for the notebook.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for suffix, metadata in ((".svg", {"Date": None}), (".pdf", {"CreationDate": None})):
        with replacing(folder / f"{name}{suffix}") as temporary:
            figure.savefig(temporary, metadata=metadata)
            if suffix == ".svg":
                temporary.write_text(_rounded(temporary.read_text(encoding="utf-8")), encoding="utf-8")


def _rounded(svg: str) -> str:
    """Return an SVG file without indentation, whose places have two decimals, and whose long paths have one."""

    def shorter(match: re.Match) -> str:
        kept = r"(\.\d)\d+" if len(match[0]) > LONG else r"(\.\d\d)\d+"
        return re.sub(kept, r"\1", match[0])

    return re.sub(r"\n +", "\n", re.sub(r' (?:d|x|y)="[^"]*"', shorter, svg))


def powers_of_ten(axis: Axis) -> None:
    """Label the ticks of a logarithmic axis like 10⁻³, because exponents in matplotlib's formulas are too small to print."""
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    axis.set_major_formatter(lambda value, _: "10" + str(round(math.log10(value))).translate(raised))


def legend_below(figure: Figure, *panels: Axes, columns: int = 3) -> None:
    """Draw one legend below the figure, with each label once, in the order of the panels."""
    named = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncol=columns)
