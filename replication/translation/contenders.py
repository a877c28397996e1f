"""Normalisers, and their implementations, compared in Table 25 of Explicit Sparse Transformer."""

from dataclasses import dataclass
from pathlib import Path

from replication.run import trained
from replication.translation.fairseq.normalizers import IMPLEMENTATIONS


@dataclass(frozen=True)
class Contender:
    """A normaliser, named as for ``--attention-normalizer``, and its implementation."""

    name: str
    implementation: str

    def options(self, top_k: int) -> dict[str, object]:
        """Return fairseq's options for this normaliser."""
        implementation = (
            {"attention_implementation": self.implementation} if self.implementation in IMPLEMENTATIONS else {}
        )
        return (
            {"attention_normalizer": self.name}
            | implementation
            | ({"attention_k": top_k} if self.name == "topk" else {})
        )

    def folder(self, models: Path) -> Path:
        """Return the contender's subfolder of ``models``."""
        return models / self.implementation / self.name


CONTENDERS = tuple(Contender(name, implementation) for implementation, name in trained.CONTENDERS)
#: The baseline and the paper's normaliser.
SOFTMAX, TOP_K = CONTENDERS[:2]
