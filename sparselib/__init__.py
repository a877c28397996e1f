"""Predict which query-key pairs of an entmax transformer get a nonzero weight, before computing them."""

from importlib import import_module

# Imported when they are asked for: what only compares fronts need not wait for torch.
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
__all__ = [*_MODULES]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    if module is None:
        return import_module(f"{__name__}.{name}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
