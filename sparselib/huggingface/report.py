"""The report of a sparsified model: each head's predictor, and the drift of the model's output."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HeadReport:
    """One head's result on the calibration half of the text.

    Parameters
    ----------
    layer, head : int
    predictor : str
        The predictor that the head attends along, or ``dense`` if it cannot be made usefully sparse at the target.
    recall : float
        Mean share of the needed keys that are predicted.
    bound : float
        Lower bound on the expected recall, at the report's confidence.
    sparsity : float
        Share of the visible pairs that are left out.
    """

    layer: int
    head: int
    predictor: str
    recall: float
    bound: float
    sparsity: float


@dataclass
class Report:
    """All heads' results, and the drift: the change of the model's output, as a share of the output's norm.

    Parameters
    ----------
    heads : list of HeadReport
    gold : str
    recall : float
        Target of every head.
    confidence : float
        Probability with which each head's bound holds, or all together if `simultaneous`.
    drift : float
    simultaneous : bool
    """

    heads: list[HeadReport]
    gold: str
    recall: float
    confidence: float
    drift: float = float("nan")
    simultaneous: bool = False

    @property
    def sparsity(self) -> float:
        """Mean sparsity of all heads that could be sparsified."""
        return sum(head.sparsity for head in self.heads) / len(self.heads)

    def __str__(self) -> str:
        header = f"{'layer':>5} {'head':>4}  {'predictor':<24} {'recall':>7} {'bound':>6} {'sparsity':>8}"
        rows = [
            f"{head.layer:>5} {head.head:>4}  {head.predictor:<24} {head.recall:>7.4f} {head.bound:>6.3f} {head.sparsity:>8.3f}"
            for head in self.heads
        ]
        dense = sum(head.predictor == "dense" for head in self.heads)
        holding = "all bounds hold together" if self.simultaneous else "each bound by itself holds"
        summary = (
            f"gold {self.gold}; {holding} with confidence {self.confidence}; mean sparsity {self.sparsity:.3f}; "
            f"{dense} of {len(self.heads)} heads dense; the output drifts by {self.drift:.3f} of its norm. "
            "Every score is still computed, unless blocks are visited (to_blocks)."
        )
        return "\n".join([header, *rows, summary])
