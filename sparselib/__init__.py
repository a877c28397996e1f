"""Predict which query-key pairs of an entmax transformer get nonzero weight, before computing any score."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparselib import masks
    from sparselib.dense_attention import Scoring, attention, gold_graph
    from sparselib.fronts import pareto_front
    from sparselib.metrics import precision, recall, sparsity
    from sparselib.normalizers import Entmax, entmax, entmax15, sparsemax, topk_softmax

__version__ = "0.1.0"

# Imported on first access, because Pareto fronts, for example, do not need torch.
_MODULES = {
    "Entmax": "normalizers",
    "Scoring": "dense_attention",
    "attention": "dense_attention",
    "entmax": "normalizers",
    "entmax15": "normalizers",
    "gold_graph": "dense_attention",
    "masks": None,
    "pareto_front": "fronts",
    "precision": "metrics",
    "recall": "metrics",
    "sparsemax": "normalizers",
    "sparsity": "metrics",
    "topk_softmax": "normalizers",
}
__all__ = ["Entmax", "Scoring", "attention", "entmax", "entmax15", "gold_graph", "masks", "pareto_front", "precision",
           "recall", "sparsemax", "sparsity", "topk_softmax"]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    if module is None:
        return import_module(f"{__name__}.{name}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
