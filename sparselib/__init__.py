"""Predict which query-key pairs of an entmax transformer get nonzero weight, before computing any score."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparselib import blocks, control, forms, graphs, kernels, masks, predictors, projections
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
    "blocks": None,
    "control": None,
    "entmax": "normalizers",
    "entmax15": "normalizers",
    "forms": None,
    "gold_graph": "dense_attention",
    "graphs": None,
    "kernels": None,
    "masks": None,
    "pareto_front": "fronts",
    "precision": "metrics",
    "predictors": None,
    "projections": None,
    "recall": "metrics",
    "sparsemax": "normalizers",
    "sparsity": "metrics",
    "topk_softmax": "normalizers",
}
__all__ = ["Entmax", "Scoring", "attention", "blocks", "control", "entmax", "entmax15", "forms", "gold_graph", "graphs",
           "kernels", "masks", "pareto_front", "precision", "predictors", "projections", "recall", "sparsemax", "sparsity",
           "topk_softmax"]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    if module is None:
        return import_module(f"{__name__}.{name}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
