"""The report of a sparsified model: what is guaranteed, each head's predictor, and the drift of the model's output."""

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
        Lower bound on the expected recall, at the report's confidence; 0 if the output is guaranteed instead.
    sparsity : float
        Share of the visible pairs that are left out.
    """

    layer: int
    head: int
    predictor: str
    recall: float
    bound: float
    sparsity: float


@dataclass(frozen=True)
class Step:
    """One tested step of the path from the dense to sparser models, on the calibration half of the text.

    Parameters
    ----------
    recall : float
        Every head's recall target on the tuning half, which is the path's parameter.
    loss : float
        Mean loss of the restricted model's output.
    sparsity : float
        Share of the visible pairs that the restricted model leaves out.
    certified : bool
        Whether the expected loss is at most the risk, at the confidence.
    """

    recall: float
    loss: float
    sparsity: float
    certified: bool


@dataclass(frozen=True)
class OutputReport:
    """What is guaranteed of the model's output.

    Parameters
    ----------
    name : str
        What the loss compares.
    risk, confidence : float
        With this confidence, the expected loss on further sequences is at most the risk.
    binary : bool
        Whether each sequence's loss was 0 or 1.
    grouped : bool
        Whether sequences belong to documents. The expected loss is then that of a further document's mean.
    path : list of Step
        The tested steps, from dense to sparse. Only the last one may not be certified.
    """

    name: str
    risk: float
    confidence: float
    binary: bool
    grouped: bool
    path: list[Step]

    @property
    def chosen(self) -> Step | None:
        """The last certified step, or None if the model stays dense."""
        return next((step for step in reversed(self.path) if step.certified), None)

    def __str__(self) -> str:
        whose = "the sequences of further documents" if self.grouped else "further sequences"
        risk, confidence = _percent(self.risk), _percent(self.confidence)
        if not self.path:
            return "the model stays dense: no step of the path leaves out any pair"
        if self.chosen is None:
            measured = _percent(self.path[0].loss)
            how = f"in {measured} of the sequences" if self.binary else f"by {measured} on average"
            return (
                f"the model stays dense: the first step of the path changes {self.name} {how}, which is not certified to be "
                f"at most {risk} with {confidence} confidence"
            )
        how = (
            f"in at most {risk} of {whose}{', on average' * self.grouped}"
            if self.binary
            else f"by at most {risk} on average over {whose}"
        )
        return (
            f"the restricted model changes {self.name} {how}, with {confidence} confidence; measured "
            f"{_percent(self.chosen.loss)}; {_percent(self.chosen.sparsity)} of the pairs left out"
        )


def _percent(share: float) -> str:
    """Return a share with two significant digits, as the risk and the confidence have."""
    return f"{float(f'{100 * share:.3g}'):g} %"


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
    output : OutputReport, optional
        What is guaranteed of the output instead of each head's recall. Then `recall` is the target of the certified step.
    """

    heads: list[HeadReport]
    gold: str
    recall: float
    confidence: float
    drift: float = float("nan")
    simultaneous: bool = False
    output: OutputReport | None = None

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
        guarantee = (
            f"{holding} with confidence {self.confidence}" if self.output is None else "only the output is guaranteed"
        )
        summary = (
            f"gold {self.gold}; {guarantee}; mean sparsity {self.sparsity:.3f}; "
            f"{dense} of {len(self.heads)} heads dense; the output drifts by {self.drift:.3f} of its norm. "
            "Every score is still computed, unless blocks are visited (to_blocks)."
        )
        first = [] if self.output is None else [str(self.output)]
        return "\n".join([*first, header, *rows, summary])
