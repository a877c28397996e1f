"""A Hugging Face model of anybody's attends along predicted graphs, each head tuned to a recall target with a guarantee.

::

    sparse = sparsify(model, batches, gold="mass:0.95", recall=0.95, confidence=0.9)
    print(sparse.report)
    with sparse: model(**inputs)
    sparse.save("folder"); Sparsified.load(model, "folder")
"""

from sparselib.sparsify.calibration import sparsify
from sparselib.sparsify.sparsified import Sparsified

__all__ = ["Sparsified", "sparsify"]
