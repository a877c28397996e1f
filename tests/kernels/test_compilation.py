"""Compile the kernels for a GPU even without one, because the interpreter accepts code that the compiler rejects."""

import json
import os
import subprocess
import sys

import pytest

from replication.files.paths import ROOT

pytest.importorskip("triton")

#: Shared memory per program on an H100 or H200.
SHARED_BYTES = 227 * 1024


#: Expected matrix instruction for each dtype, dimension, alpha, causality and block.
ATTENTION = {
    ("bfloat16", 64, 1.5, False, 64): "wgmma",
    ("bfloat16", 128, 1.0, True, 128): "wgmma",
    ("bfloat16", 256, 1.5, True, 64): "wgmma",
    ("float16", 64, 1.25, True, 16): "mma.sync",
    ("float32", 32, 2.0, False, 32): "fma",
}
#: The same for each dtype, dimension, alpha, block and page.
DECODING = {
    ("bfloat16", 128, 1.5, 64, 0): "mma.sync",
    ("float16", 256, 1.0, 0, 0): "mma.sync",
    ("bfloat16", 64, 1.25, 20, 0): "mma.sync",
    ("float32", 256, 2.0, 128, 0): "fma",
    ("bfloat16", 128, 1.5, 64, 16): "mma.sync",
    ("float16", 64, 1.5, 0, 64): "mma.sync",
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory) -> dict[tuple, list[dict]]:
    """Compile all kernels with an empty cache; return rows per setting, or the error message of a failed setting."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'benchmarks'}"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("triton"))
    environment.pop("TRITON_INTERPRET", None)
    settings = [*ATTENTION, *DECODING]
    command = [sys.executable, str(ROOT / "tests" / "kernels" / "compile_kernels.py"), *map(json.dumps, settings)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    results = dict(zip(settings, map(json.loads, run.stdout.splitlines()), strict=False))
    if run.returncode:  # The first setting without a result is the one that failed.
        results[settings[len(results)]] = run.stderr[-3000:]
    return results


def rows_of(kernels: dict[tuple, list[dict]], setting: tuple) -> list[dict]:
    """Return the rows of a setting, or fail with the compiler's error."""
    assert setting in kernels, "not reached, because another setting did not compile"
    assert isinstance(kernels[setting], list), kernels[setting]
    return kernels[setting]


@pytest.mark.parametrize(("arguments", "product"), ATTENTION.items(), ids=str)
def test_the_kernels_compile_for_hopper(kernels, arguments, product):
    compiled = rows_of(kernels, arguments)
    list_kernels = ["_cut", "_tiles_of_marks"]
    attention = [kernel for kernel in compiled if kernel["kernel"] not in list_kernels]
    assert [x["kernel"] for x in compiled if x["kernel"] in list_kernels] == ["_cut"] * arguments[3] + list_kernels
    assert [kernel["kernel"] for kernel in attention] == ["_forward", "_gradient_of_queries", "_gradients_of_keys"]
    assert {kernel["product"] for kernel in attention} == {product}
    assert all(kernel["shared_bytes"] <= SHARED_BYTES for kernel in attention)
    # The tensor cores wait for the work per pair. The refining loop takes 7.8 instructions per pair, of which the threshold's
    # three sums need 5. If clamping took an instruction of its own, or sums were taken by row, it would take 9 or more.
    if arguments == ("bfloat16", 64, 1.5, False, 64):
        # A few spilled registers are accepted, because they make room for one more program on a multiprocessor.
        assert all(kernel["spilled_bytes"] <= 64 for kernel in attention)
        loops = {loop["name"]: loop["instructions"] for kernel in attention for loop in kernel["loops"]}
        assert list(loops) == ["estimate", "refine", "weigh", "dq", "dk, dv"]
        assert 5 < loops["refine"] < 8.5


@pytest.mark.parametrize(("arguments", "product"), DECODING.items(), ids=str)
def test_decoding_compiles_for_hopper(kernels, arguments, product):
    rows = rows_of(kernels, arguments)
    assert [kernel["kernel"] for kernel in rows] == ["_scores", "_thresholds", "_weigh"]
    assert [kernel["product"] for kernel in rows] == [product, None, product]
    assert all(kernel["shared_bytes"] <= SHARED_BYTES for kernel in rows)
    if arguments[1] <= 128:
        assert all(kernel["spilled_bytes"] == 0 for kernel in rows)
