"""Which blocks of keys each block of queries visits, in FlexAttention's format of counts and indices."""

from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor
from torch.nn.attention import flex_attention

from . import flex
from .checks import fail_shapes, pair
from .lists import concatenated


@dataclass(frozen=True, eq=False)
class BlockMask:
    """Blocks of keys visited by each block of queries, per batch entry and head; every token of a visited block is seen.

    The first ``kv_num_blocks[b, h, i]`` entries of ``kv_indices[b, h, i]`` are the blocks of keys that the i-th block of
    queries visits; what follows them is ignored. Like in FlexAttention, blocks may be listed apart as *full*. Here that changes
    nothing: causality and lengths are arguments of the attention, and apply to both kinds.

    Attributes
    ----------
    kv_num_blocks : int32 or int64 Tensor ``[B, H, Q_blocks]``
        B and H may be 1, for all batch entries or heads.
    kv_indices : Tensor of the same dtype ``[B, H, Q_blocks, KV_blocks]``
    block_size : tuple of int
        Queries and keys per block.
    length : tuple of int
        Number of queries and of keys: they need not be multiples of the block.
    full_kv_num_blocks, full_kv_indices : Tensor, optional
        As the first two; no block may be listed in both.

    Raises
    ------
    ValueError
        For wrong shapes, dtypes or devices, counts beyond the row, indices out of range, or a block listed twice.

    >>> counts, indices = torch.tensor([[[1, 2]]]), torch.tensor([[[[0, 0], [0, 1]]]])
    >>> BlockMask(counts, indices, block_size=8, length=16).to_dense()[0, 0].int()
    tensor([[1, 0],
            [1, 1]], dtype=torch.int32)
    """

    kv_num_blocks: Tensor
    kv_indices: Tensor
    block_size: tuple[int, int]
    length: tuple[int, int]
    full_kv_num_blocks: Tensor | None = None
    full_kv_indices: Tensor | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "block_size", pair("block_size", self.block_size))
        object.__setattr__(self, "length", pair("length", self.length))
        if (self.full_kv_num_blocks is None) != (self.full_kv_indices is None):
            raise ValueError("full_kv_num_blocks and full_kv_indices: give both or neither")
        self._check_list("kv_num_blocks", self.kv_num_blocks, "kv_indices", self.kv_indices)
        if self.full_kv_indices is not None:
            self._check_list("full_kv_num_blocks", self.full_kv_num_blocks, "full_kv_indices", self.full_kv_indices)
            if self.full_kv_indices.shape[:3] != self.kv_indices.shape[:3]:
                fail_shapes("full_kv_indices", self.full_kv_indices.shape, "kv_indices", self.kv_indices.shape)
            if self.full_kv_indices.device != self.kv_indices.device:
                raise ValueError(
                    f"full_kv_indices: {self.full_kv_indices.device}, kv_indices: {self.kv_indices.device}"
                )
        self._check_numbers()

    def _check_list(self, counts_name: str, counts: Tensor, indices_name: str, indices: Tensor) -> None:
        for name, tensor in ((counts_name, counts), (indices_name, indices)):
            if not isinstance(tensor, Tensor) or tensor.dtype not in (torch.int32, torch.int64):
                raise ValueError(
                    f"{name}: int32 or int64 tensor expected, got {getattr(tensor, 'dtype', type(tensor))}"
                )
        if counts.dtype != indices.dtype or counts.device != indices.device:
            raise ValueError(
                f"{counts_name} and {indices_name}: {counts.dtype} on {counts.device}, {indices.dtype} on {indices.device}"
            )
        q_blocks, kv_blocks = self.blocks
        if indices.ndim != 4 or indices.shape[2] != q_blocks or indices.shape[3] > kv_blocks:
            fail_shapes(indices_name, indices.shape, "blocks [B, H, Q_blocks, KV_blocks]", ("B", "H", *self.blocks))
        if counts.shape != indices.shape[:3]:
            fail_shapes(counts_name, counts.shape, indices_name, indices.shape)

    def _check_numbers(self) -> None:
        """Counts, indices and repeated blocks, with one wait for a GPU: what is wrong is looked for once something is."""
        wrong = [x for listed in self.lists() for x in self._wrong(*listed)] + self._repeated()
        if not torch.stack([x.any() for x in wrong]).any():
            return
        for kind, (counts, indices) in zip(("", "full_"), self.lists(), strict=False):
            beyond, outside = self._wrong(counts, indices)
            if beyond.any():
                raise ValueError(
                    f"{kind}kv_num_blocks: counts from {counts.min()} to {counts.max()} of shape {tuple(counts.shape)}, "
                    f"but {kind}kv_indices of shape {tuple(indices.shape)} has rows of {indices.shape[3]}"
                )
            if outside.any():
                first = _seen_once(counts, indices)[1][outside][0]
                raise ValueError(
                    f"{kind}kv_indices: index {first} is out of range for {self.blocks[1]} blocks of keys; "
                    f"shapes {tuple(indices.shape)} and {self.blocks}"
                )
        shapes = [tuple(x.shape) for x in (self.kv_indices, self.full_kv_indices) if x is not None]
        raise ValueError(f"kv_indices: a block is listed twice in a row; shapes {shapes}, blocks {self.blocks}")

    def _wrong(self, counts: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
        """True where a count is beyond its row, and where a listed index is no block."""
        beyond = (counts < 0) | (counts > indices.shape[3])
        counts, indices = _seen_once(counts, indices)
        return beyond, _within_count(counts, indices) & ((indices < 0) | (indices >= self.blocks[1]))

    def _repeated(self) -> list[Tensor]:
        """True where a block follows itself in a sorted list: visits of every pair of blocks would be larger than the lists."""
        lists = [_seen_once(*listed) for listed in self.lists()]
        if self.full_kv_indices is not None:
            lists.append(concatenated(self.lists()))
        listed = [(indices, _within_count(counts, indices)) for counts, indices in lists]
        ordered = [torch.where(within, indices, self.blocks[1]).sort(-1).values for indices, within in listed]
        return [(x[..., 1:] == x[..., :-1]) & (x[..., 1:] < self.blocks[1]) for x in ordered]

    def _visits(self) -> Tensor:
        """How often each block is listed: ``[B, H, Q_blocks, KV_blocks]`` of int8."""
        visits = torch.zeros(*self.shape, *self.blocks, dtype=torch.int8, device=self.device)
        for counts, indices in self.lists():
            listed = _within_count(counts, indices)
            visits.scatter_add_(-1, torch.where(listed, indices, 0).long(), listed.to(torch.int8))
        return visits

    def lists(self) -> list[tuple[Tensor, Tensor]]:
        """Counts ``[B, H, Q_blocks]`` and indices ``[B, H, Q_blocks, *]`` of the blocks; of the full ones too, if given."""
        partial = [(self.kv_num_blocks, self.kv_indices)]
        return partial if self.full_kv_indices is None else [*partial, (self.full_kv_num_blocks, self.full_kv_indices)]

    @property
    def shape(self) -> tuple[int, int]:
        """B and H, each possibly 1."""
        return tuple(self.kv_num_blocks.shape[:2])

    @property
    def blocks(self) -> tuple[int, int]:
        """Number of blocks of queries and of keys, the last of them possibly ragged."""
        return tuple(-(-n // size) for n, size in zip(self.length, self.block_size, strict=True))

    @property
    def device(self) -> torch.device:
        return self.kv_num_blocks.device

    @property
    def density(self) -> float:
        """Share of all pairs of blocks that is visited; 0 for a mask without any pair."""
        visited = sum(int(counts.sum()) for counts, _ in self.lists())
        return visited / max(1, self.kv_num_blocks.numel() * self.blocks[1])

    def to(self, device: torch.device | str) -> Self:
        """The same mask on another device."""
        own = (getattr(self, field.name) for field in fields(self))
        return self.unchecked(*(x.to(device) if isinstance(x, Tensor) else x for x in own))

    def to_dense(self) -> Tensor:
        """``Bool[B, H, Q_blocks, KV_blocks]``, True where a block is visited."""
        return self._visits() > 0

    @classmethod
    def unchecked(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        block_size: tuple[int, int],
        length: tuple[int, int],
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
    ) -> Self:
        """The mask of these attributes without a look at them, for which a GPU would be waited for.

        For lists that are right by construction: an index out of range reads foreign memory, a block listed twice counts
        twice.
        """
        mask = object.__new__(cls)
        given = (kv_num_blocks, kv_indices, block_size, length, full_kv_num_blocks, full_kv_indices)
        for field, value in zip(fields(cls), given, strict=True):
            object.__setattr__(mask, field.name, value)
        return mask

    @classmethod
    def from_dense(cls, dense: Tensor, block_size: int | tuple[int, int], length: int | tuple[int, int]) -> Self:
        """The mask of ``dense``, ``Bool[B, H, Q_blocks, KV_blocks]``; indices ascend, in rows as wide as the longest.

        Raises
        ------
        ValueError
            If `dense` is not boolean, or its blocks are not those of `length` and `block_size`.

        Examples
        --------
        >>> BlockMask.from_dense(torch.eye(4, dtype=torch.bool).view(1, 1, 4, 4), 16, 50).density
        0.25
        """
        if dense.dtype != torch.bool or dense.ndim != 4:
            raise ValueError(f"dense: Bool[B, H, Q_blocks, KV_blocks] expected, got {dense.dtype} {tuple(dense.shape)}")
        block_size, length = pair("block_size", block_size), pair("length", length)
        blocks = tuple(-(-n // size) for n, size in zip(length, block_size, strict=True))
        if dense.shape[2:] != blocks:
            fail_shapes("dense", dense.shape, f"blocks of {block_size} in lengths {length}", ("B", "H", *blocks))
        counts = dense.sum(-1, dtype=torch.int32)
        indices = (~dense).to(torch.uint8).argsort(dim=-1, stable=True).to(torch.int32)
        longest = int(counts.max()) if counts.numel() else 0
        return cls.unchecked(counts, indices[..., :longest].contiguous(), block_size, length)

    @classmethod
    def from_flex(cls, mask: flex_attention.BlockMask, *, drop_mask_mod: bool = False) -> Self:
        """The blocks of a FlexAttention mask.

        Parameters
        ----------
        drop_mask_mod : bool
            Partial blocks are taken whole, and the rule within them has to be given to the attention as `causal` or `lengths`.

        Raises
        ------
        ValueError
            If there are partial blocks with a rule of their own, a ``mask_mod``, and it is not to be dropped.
        """
        ruled = not drop_mask_mod and mask.mask_mod is not flex_attention.noop_mask
        if ruled and mask.kv_num_blocks.any():
            raise ValueError(
                "mask: its partial blocks follow a mask_mod, which BlockMask has no place for; "
                "drop_mask_mod=True takes them whole, and causal or lengths of the attention may stand for the rule"
            )
        return cls(
            mask.kv_num_blocks,
            mask.kv_indices,
            mask.BLOCK_SIZE,
            mask.seq_lengths,
            mask.full_kv_num_blocks,
            mask.full_kv_indices,
        )

    def to_flex(self) -> flex_attention.BlockMask:
        """FlexAttention's mask of the same blocks, all of them *full*, as every token of a listed block is seen.

        Its ``mask_mod`` looks the block of a pair of tokens up, for uncompiled FlexAttention, which reads no list; the compiled
        one does not call it for full blocks. On another device the mask has to be made there, of ``mask.to(device)``.
        """
        return flex.of_full_blocks(*concatenated(self.lists()), self.to_dense(), self.block_size, self.length)


def _within_count(counts: Tensor, indices: Tensor) -> Tensor:
    """True where an entry of ``indices [..., W]`` counts, by ``counts [...]``."""
    return torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]


def _seen_once(counts: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Rows that are one list expanded (stride 0) as one row with the largest of their counts, so as to check it only once."""
    for dim in range(3):
        if indices.stride(dim) == 0 and indices.shape[dim] > 1:
            counts, indices = counts.amax(dim, keepdim=True), indices.narrow(dim, 0, 1)
    return counts, indices
