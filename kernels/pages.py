"""Caches in pages: a table tells which page of a pool has each part of a sequence's keys and values."""

import torch
from torch import Tensor

from .checks import check_integers, check_same_device
from .tracing import is_traced

#: Sizes of pages and of visited blocks are multiples of this many keys, so that a step of a kernel lies within one page.
STEP = 16


def check_pages(pages: Tensor, q: Tensor, k: Tensor, v: Tensor) -> None:
    """Check that a page table and the pools of keys and values match the queries and each other, but not the table's values.

    Parameters
    ----------
    pages : int Tensor ``[B, P]``
        The page table.
    q : Tensor ``[B, H, M, D]``
        Queries.
    k, v : Tensor ``[N, G, S, D]``, ``[N, G, S, E]``
        Pools of N pages of S tokens.

    Raises
    ------
    ValueError
        If a type, shape or device does not match, or a page is not a multiple of 16 tokens.
    """
    check_integers("pages", pages)
    if pages.ndim != 2 or len(pages) != len(q):
        raise ValueError(f"`pages` must have shape ({len(q)}, pages per sequence), got {tuple(pages.shape)}")
    check_same_device("pages", pages.device, q)
    for name, pool in (("k", k), ("v", v)):
        if pool.ndim != 4 or pool.shape[:3] != k.shape[:3] or pool.shape[2] == 0 or pool.shape[2] % STEP:
            raise ValueError(
                f"`{name}` must have shape (pages, heads, S, D) where S is a multiple of {STEP} and `k` and `v` agree, "
                f"got {tuple(k.shape)} and {tuple(v.shape)}"
            )


def check_used(pages: Tensor, k: Tensor, lengths: Tensor | None) -> None:
    """Check that the entries that are used name pages of the pool; only on a CPU, because reading them waits for a GPU.

    Parameters
    ----------
    pages : int Tensor ``[B, P]``
        The page table.
    k : Tensor ``[N, G, S, D]``
        Pool of keys.
    lengths : int Tensor ``[B]``, optional
        Tokens of each sequence.

    Raises
    ------
    ValueError
        If an entry is outside 0 to N - 1.
    """
    if is_traced(pages) or pages.is_cuda:
        return
    first = torch.arange(pages.shape[1]) * k.shape[2]
    used = pages if lengths is None else pages[first < lengths[:, None]]
    if ((used < 0) | (used >= len(k))).any():
        raise ValueError(f"`pages` must name pages from 0 to {len(k) - 1} for all tokens, got {pages.tolist()}")


def without_pages(x: Tensor, pages: Tensor) -> Tensor:
    """Return a tensor without own memory that has the shape ``[B, G, P * S, D]`` of the same cache without pages.

    Parameters
    ----------
    x : Tensor ``[N, G, S, D]``
        Pool of keys or values.
    pages : int Tensor ``[B, P]``
        The page table.
    """
    return x.new_empty(1).expand(len(pages), x.shape[1], pages.shape[1] * x.shape[2], x.shape[3])


def read(x: Tensor, pages: Tensor, position: Tensor) -> Tensor:
    """Return the keys or values ``[B, G, K, D]`` at positions ``[B, G, K]`` of each sequence.

    Parameters
    ----------
    x : Tensor ``[N, G, S, D]``
        Pool of keys or values.
    pages : int Tensor ``[B, P]``
        The page table. Entries that name no page are read as the nearest one that exists.
    position : int Tensor ``[B, G, K]``
        Positions from 0 to ``P * S - 1``.
    """
    size = x.shape[2]
    table = pages.long()[:, None].expand(-1, x.shape[1], -1)
    page = table.gather(2, position // size).clamp(0, len(x) - 1)
    head = torch.arange(x.shape[1], device=x.device)[:, None]
    return x[page, head, position % size]
