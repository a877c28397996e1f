"""Memory of freed tensors, which the process keeps for its next ones."""

import ctypes
import sys

# Parameters of mallopt, as glibc's malloc.h numbers them.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Take the memory of large tensors from the heap, and never give it back before the process ends.

    By default glibc returns that of every large matrix to the system, which clears it page by page for the next one: learning
    projections takes half as long again with it, and dense attention too. Other C libraries are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, -1)  # none
