"""The interpreter takes what a compiler may refuse: so the kernels are compiled for a GPU, whether there is one or not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparselib.paths import ROOT

pytest.importorskip("triton")


@pytest.mark.parametrize(
    ("arguments", "product"),
    [
        (("bfloat16", 64, 1.5, False, 64), "wgmma"),
        (("bfloat16", 128, 1.0, True, 128), "wgmma"),
        (("float16", 64, 1.25, True, 16), "mma.sync"),
        (("float32", 32, 2.0, False, 32), "fma"),
    ],
    ids=str,
)
def test_the_kernels_compile_for_hopper(tmp_path, arguments, product):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    script = Path(__file__).with_name("compile_for_hopper.py")
    command = [sys.executable, str(script), *map(str, arguments)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert [kernel["kernel"] for kernel in found] == ["_forward", "_gradient_of_queries", "_gradients_of_keys"]
    assert all(kernel["bytes"] > 1000 for kernel in found)
    assert {kernel["product"] for kernel in found} == {product}
