"""One style for all figures: colour-blind-safe colours, vector files beside the picture."""

from pathlib import Path

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparselib.storage import replacing

PALETTE = sns.color_palette("colorblind")


def use_style() -> None:
    """The style of every figure of this repository."""
    sns.set_theme(context="paper", style="ticks", font_scale=1.0)
    plt.rcParams |= {
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
