"""One style for all figures: widths for print, colours apart for every eye, vector files beside the picture."""

import math
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib import rc_params_from_file
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from replication.files.storage import replacing

STYLE = Path(__file__).parent / "print.mplstyle"
#: Widths of a figure over the text and of one in a column, in inches: those of the ACL's style. A page is 9.4 high.
TEXT, COLUMN, PAGE = 6.3, 3.03, 9.4
#: The colours in which lines follow each other.
PALETTE = rc_params_from_file(STYLE, use_default_template=False)["axes.prop_cycle"].by_key()["color"]
BLUE, VERMILLION, YELLOW, GREEN, BROWN, INDIGO, SKY, GREY = PALETTE


def use_style() -> None:
    """The style of every figure of this repository."""
    plt.style.use(STYLE)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as ``name.svg`` and ``name.pdf``, without the date, so that equal figures are equal files.

    Raises ``ValueError`` if the figure has neither of the two widths, or is higher than a page.
    """
    width, height = figure.get_size_inches()
    if width not in (TEXT, COLUMN) or height > PAGE:
        raise ValueError(
            f"{name}: {width:g} by {height:g} inches; {TEXT} or {COLUMN} wide and at most {PAGE} high expected"
        )
    # The layout, once for all formats and for the notebook.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for suffix, metadata in ((".svg", {"Date": None}), (".pdf", {"CreationDate": None})):
        with replacing(folder / f"{name}{suffix}") as temporary:
            figure.savefig(temporary, metadata=metadata)


def powers_of_ten(axis: Axis) -> None:
    """Ticks of a logarithmic axis as 10⁻³: in the formulas that matplotlib writes there, exponents are too small for print."""
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    axis.set_major_formatter(lambda value, _: "10" + str(round(math.log10(value))).translate(raised))


def legend_below(figure: Figure, *panels: Axes, columns: int = 3) -> None:
    """One legend for the whole figure, under it: every name once, in the order in which the panels bring them."""
    named = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncol=columns)
