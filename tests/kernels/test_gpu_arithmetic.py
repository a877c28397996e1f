"""Results stay exact with the logarithms and powers of a GPU, which are less accurate than those of Triton's interpreter."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton")
if torch.cuda.is_available():
    pytest.skip("a GPU has its own arithmetic", allow_module_level=True)

from tests.kernels.test_triton import check_errors, random_inputs, random_mask

#: Errors in NVIDIA's PTX manual: of `lg2.approx.f32` near 1 (absolute), `ex2.approx.f32` and `sqrt.approx.f32` (relative).
ERRORS = {"log2": 2.0**-22.6, "exp2": 2.0**-22.5, "sqrt": 2.0**-22}


@pytest.fixture
def gpu_arithmetic(monkeypatch):
    """Add errors of this size to the interpreter's functions."""
    generator = np.random.default_rng(0)

    def inexact(name):
        exact = getattr(np, name)

        def function(x, *arguments, **options):
            y = exact(x, *arguments, **options)
            noise = ERRORS[name] * generator.uniform(-1, 1, np.shape(y))
            return (y + noise * (1 if name == "log2" else y)).astype(y.dtype)

        return function

    for name in ERRORS:
        monkeypatch.setattr(np, name, inexact(name))


@pytest.mark.parametrize("alpha", [1.25, 1.5, 2])
@pytest.mark.parametrize(("n", "d", "block"), [(65, 16, None), (129, 16, 64), (129, 64, 16)])
def test_errors_are_those_of_plain_pytorch(n, d, block, alpha, gpu_arithmetic):
    check_errors(random_inputs(n, d), block and random_mask(n, block), alpha=alpha)
