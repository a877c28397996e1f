"""Predict which query-key pairs of an entmax transformer get a nonzero weight, before computing them."""

from importlib import import_module

# Imported when they are asked for: what only reads tables need not wait for torch.
_MODULES = {
    "attention": "masked_attention",
    "entmax": "normalizers",
    "entmax15": "normalizers",
    "sparsemax": "normalizers",
    "topk_softmax": "normalizers",
}
__all__ = ["attention", "entmax", "entmax15", "sparsemax", "topk_softmax"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
