"""The normalisers that Table 25 of Explicit Sparse Transformer compares, each with whose implementation."""

from dataclasses import dataclass
from pathlib import Path

from replication.translation.fairseq.normalizers import IMPLEMENTATIONS


@dataclass(frozen=True)
class Contender:
    """A normaliser, as ``--attention-normalizer`` calls it, and whose it is."""

    name: str
    implementation: str

    def options(self, top_k: int) -> dict[str, object]:
        """What makes fairseq's model attend with it."""
        implementation = (
            {"attention_implementation": self.implementation} if self.implementation in IMPLEMENTATIONS else {}
        )
        return (
            {"attention_normalizer": self.name}
            | implementation
            | ({"attention_k": top_k} if self.name == "topk" else {})
        )

    def folder(self, models: Path) -> Path:
        """Where its model lies among those of all."""
        return models / self.implementation / self.name


#: What the others are compared with.
SOFTMAX = Contender("softmax", "torch")
TOP_K = Contender("topk", "sparselib")
CONTENDERS = (
    SOFTMAX,
    TOP_K,
    *(Contender(name, whose) for name in ("sparsemax", "entmax15", "entmax_alpha") for whose in IMPLEMENTATIONS),
)
