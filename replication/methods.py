"""Methods that tables and figures compare: one row each, with label, colour, marker and line, in the order of legends.

Colours are places in the colour cycle of ``plots/print.mplstyle``. Sparsefinder's and other learned methods have solid lines,
fixed patterns and third-party baselines have dashed ones.
"""

from dataclasses import dataclass

BLUE, VERMILLION, YELLOW, GREEN, BROWN, INDIGO, SKY, GREY = (f"C{place}" for place in range(8))


@dataclass(frozen=True)
class Method:
    """A method of selecting pairs or blocks."""

    label: str
    color: str
    marker: str
    line: str = "-"

    @property
    def style(self) -> dict[str, str]:
        """Return matplotlib's arguments for a line."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.line}


#: Methods of the recall sweep: Sparsefinder's, learned baselines, fixed patterns.
METHODS = {
    "sparsefinder-distance": Method("Sparsefinder, distance", BLUE, "o"),
    "sparsefinder-kmeans": Method("Sparsefinder, k-means", VERMILLION, "s"),
    "sparsefinder-quantization": Method("Sparsefinder, quantization", YELLOW, "D"),
    "routing": Method("Routing Transformer", GREEN, "^"),
    "reformer": Method("Reformer", BROWN, "v"),
    "bigbird": Method("BigBird", INDIGO, "P", "--"),
    "longformer": Method("Longformer", SKY, "*", "--"),
    "window": Method("Window", GREY, "X", "--"),
}
#: Methods that choose blocks (section 6.1 of the paper). The reference code ran BigBird with softmax.
BLOCK_METHODS = {
    "sparsefinder-v1": Method("Sparsefinder v1", BLUE, "o"),
    "sparsefinder-v2": Method("Sparsefinder v2", VERMILLION, "s"),
    "bigbird": Method("BigBird, entmax", INDIGO, "P"),
    "bigbird-softmax": Method("BigBird, softmax", INDIGO, "X", "--"),
}
#: Selection rules applied without retraining, the one that computes all scores first.
RULES = {
    "oracle": Method("Largest scores (oracle)", "black", "", ":"),
    "sparsefinder-distance": Method("Sparsefinder, distance", BLUE, "o"),
    "sparsefinder-kmeans": Method("Sparsefinder, k-means", VERMILLION, "s"),
    "sparsefinder-v2": Method("Sparsefinder v2", YELLOW, "D"),
    "gate": Method("Gate (SeerAttention)", GREEN, "^", "--"),
    "quest": Method("Quest", BROWN, "v", "--"),
    "xattention": Method("XAttention", INDIGO, "P", "--"),
    "vertical-slash": Method("Vertical-slash (MInference)", SKY, "*", "--"),
    "streaming-llm": Method("StreamingLLM", GREY, "X", "--"),
}
