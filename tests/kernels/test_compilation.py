"""The interpreter takes what a compiler may refuse: so the kernels are compiled for a GPU, whether there is one or not."""

import json
import os
import subprocess
import sys

import pytest

from replication.files.paths import ROOT

pytest.importorskip("triton")

#: What a program may have on a multiprocessor of an H100 or H200.
SHARED_BYTES = 227 * 1024


#: Dtype, dimension, alpha, causal or not, and block; with it the product that the kernels are expected to use.
ATTENTION = {
    ("bfloat16", 64, 1.5, False, 64): "wgmma",
    ("bfloat16", 128, 1.0, True, 128): "wgmma",
    ("bfloat16", 256, 1.5, True, 64): "wgmma",
    ("float16", 64, 1.25, True, 16): "mma.sync",
    ("float32", 32, 2.0, False, 32): "fma",
}
#: Dtype, dimension, alpha and block.
DECODING = {
    ("bfloat16", 128, 1.5, 64): "mma.sync",
    ("float16", 256, 1.0, 0): "mma.sync",
    ("bfloat16", 64, 1.25, 20): "mma.sync",
    ("float32", 256, 2.0, 128): "fma",
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory) -> dict[tuple, list[dict]]:
    """What became of the kernels, by setting; nothing is in the cache."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'benchmarks'}"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("triton"))
    environment.pop("TRITON_INTERPRET", None)
    settings = [*ATTENTION, *DECODING]
    command = [sys.executable, str(ROOT / "tests" / "kernels" / "compile_kernels.py"), *map(json.dumps, settings)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    found = dict(zip(settings, map(json.loads, run.stdout.splitlines()), strict=False))
    if run.returncode:  # the first setting that is not there
        found[settings[len(found)]] = run.stderr[-3000:]
    return found


def of_setting(kernels: dict[tuple, list[dict]], setting: tuple) -> list[dict]:
    assert setting in kernels, "not reached: another setting did not compile"
    assert isinstance(kernels[setting], list), kernels[setting]
    return kernels[setting]


@pytest.mark.parametrize(("arguments", "product"), ATTENTION.items(), ids=str)
def test_the_kernels_compile_for_hopper(kernels, arguments, product):
    compiled = of_setting(kernels, arguments)
    lists = ["_cut", "_tiles_of_marks"]
    found = [kernel for kernel in compiled if kernel["kernel"] not in lists]
    assert [x["kernel"] for x in compiled if x["kernel"] in lists] == ["_cut"] * arguments[3] + lists
    assert [kernel["kernel"] for kernel in found] == ["_forward", "_gradient_of_queries", "_gradients_of_keys"]
    assert {kernel["product"] for kernel in found} == {product}
    assert all(kernel["shared_bytes"] <= SHARED_BYTES for kernel in found)
    # The tensor cores wait for what is done with each pair: 5.8 instructions in the most frequent loop, where the steps that
    # find a threshold need 3. Clamping that is no longer one instruction with its product, or sums by row, are 7 and more.
    if arguments == ("bfloat16", 64, 1.5, False, 64):
        # A few registers more on the stack are the price of one more program on a multiprocessor, which is worth it.
        assert all(kernel["spilled_bytes"] <= 64 for kernel in found)
        loops = {loop["name"]: loop["instructions"] for kernel in found for loop in kernel["loops"]}
        assert list(loops) == ["bound", "refine", "weigh", "dq", "dk, dv"]
        assert 3 < loops["refine"] < 6.5


@pytest.mark.parametrize(("arguments", "product"), DECODING.items(), ids=str)
def test_decoding_compiles_for_hopper(kernels, arguments, product):
    found = of_setting(kernels, arguments)
    assert [kernel["kernel"] for kernel in found] == ["_scores", "_thresholds", "_weigh"]
    assert [kernel["product"] for kernel in found] == [product, None, product]
    assert all(kernel["shared_bytes"] <= SHARED_BYTES for kernel in found)
    if arguments[1] <= 128:
        assert all(kernel["spilled_bytes"] == 0 for kernel in found)
