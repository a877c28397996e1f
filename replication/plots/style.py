"""One style for all figures: colour-blind-safe colours, vector files beside the picture."""

from pathlib import Path

import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from replication.storage import replacing

# Both are seaborn's, written out: importing it brings scipy along, two seconds in every notebook. A test holds them equal.
#: The palette "colorblind".
PALETTE = [
    to_rgb(color) for color in "#0173b2 #de8f05 #029e73 #d55e00 #cc78bc #ca9161 #fbafe4 #949494 #ece133 #56b4e9".split()
]
#: The theme in the context "paper" and the style "ticks".
THEME = {
    "axes.axisbelow": True,
    "axes.edgecolor": ".15",
    "axes.labelcolor": ".15",
    "axes.labelsize": 9.6,
    "axes.linewidth": 1.0,
    "axes.prop_cycle": cycler(
        color=[
            "#4c72b0",
            "#dd8452",
            "#55a868",
            "#c44e52",
            "#8172b3",
            "#937860",
            "#da8bc3",
            "#8c8c8c",
            "#ccb974",
            "#64b5cd",
        ]
    ),
    "axes.titlesize": 9.6,
    "font.sans-serif": ["Arial", "DejaVu Sans", "Liberation Sans", "Bitstream Vera Sans", "sans-serif"],
    "font.size": 9.6,
    "grid.color": ".8",
    "legend.fontsize": 8.8,
    "legend.title_fontsize": 9.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.8,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "w",
    "patch.force_edgecolor": True,
    "patch.linewidth": 0.8,
    "text.color": ".15",
    **{
        f"{axis}tick.{key}": value
        for axis in "xy"
        for key, value in {
            "color": ".15",
            "labelsize": 8.8,
            "major.size": 4.8,
            "major.width": 1.0,
            "minor.size": 3.2,
            "minor.width": 0.8,
        }.items()
    },
}


def use_style() -> None:
    """The style of every figure of this repository."""
    plt.rcParams |= THEME | {
        "figure.dpi": 100,
        "savefig.bbox": "tight",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "svg.hashsalt": "sparselib",
        "pdf.fonttype": 42,
    }


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as ``name.svg`` and ``name.pdf``, without the date, so that equal figures are equal files."""
    for suffix, metadata in ((".svg", {"Date": None}), (".pdf", {"CreationDate": None})):
        with replacing(folder / f"{name}{suffix}") as temporary:
            figure.savefig(temporary, metadata=metadata)


def legend_below(figure: Figure, axes: Axes, columns: int = 3) -> None:
    """One legend for the whole figure, under it."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=columns)
