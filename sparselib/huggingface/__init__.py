"""Entmax, predicted graphs and sparsified heads in Hugging Face models.

::

    control = use_attention(model, entmax15)
    with control.restricted_to(graph):
        model(**inputs)

    sparse = sparsify(model, batches, gold="mass:0.95", recall=0.95, confidence=0.9)
    print(sparse.report)
    with sparse:
        model(**inputs)
    sparse.save("folder")
    Sparsified.load(model, "folder")
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparselib.huggingface.attention import use_attention
    from sparselib.huggingface.calibration import sparsify
    from sparselib.huggingface.modernbert import global_entmax
    from sparselib.huggingface.saved import read_report
    from sparselib.huggingface.sparsified import Sparsified

# Imported on first access, so that `use_attention` does not load the calibration, nor `read_report` transformers.
_MODULES = {
    "Sparsified": "sparsified",
    "global_entmax": "modernbert",
    "read_report": "saved",
    "sparsify": "calibration",
    "use_attention": "attention",
}
__all__ = ["Sparsified", "global_entmax", "read_report", "sparsify", "use_attention"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
