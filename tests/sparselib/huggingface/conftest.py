import pytest
from small_models import MODELS, made, text

from sparselib.huggingface import sparsify


@pytest.fixture(scope="module", params=MODELS)
def sparse(request):
    """A model, and what sparsifying it has come to."""
    model = made(request.param)
    return model, sparsify(model, text(12), recall=0.9, gold="entmax:1.5")
