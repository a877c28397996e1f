"""Freed memory that is kept needs no new pages."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys, torch
from replication.memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
pages = []
for _ in range(24):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.zeros(8 << 20)  # 32 MiB, which are freed at once
    pages.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sum(pages[-8:]))
"""


def new_pages(how: str) -> int:
    ran = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return int(ran.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="pages are counted on Linux")
def test_only_the_first_tensors_ask_for_pages():
    assert new_pages("kept") < 10
    assert new_pages("given back") > 1000
