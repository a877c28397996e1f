"""The normalisers that Table 25 of Explicit Sparse Transformer compares, each with whose implementation."""

from dataclasses import dataclass
from pathlib import Path

from replication import trained
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


CONTENDERS = tuple(Contender(name, implementation) for implementation, name in trained.CONTENDERS)
#: The normaliser that the others are compared with, and the paper's own.
SOFTMAX, TOP_K = CONTENDERS[:2]
