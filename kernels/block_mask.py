"""Block masks in FlexAttention's format: counts and indices of the key blocks that each query block visits."""

from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor
from torch.nn.attention import flex_attention

from . import flex
from .checks import pair
from .list_checks import check_lists
from .lists import concatenated, within_count
from .rules import MaskMod


@dataclass(frozen=True, eq=False)
class BlockMask:
    """Key blocks that each query block visits, per batch entry and head, and an optional rule for pairs inside them.

    The first ``kv_num_blocks[b, h, i]`` entries of ``kv_indices[b, h, i]`` are the key blocks that query block i visits. Later
    entries are ignored. As in FlexAttention, blocks can be listed separately as *full*: there, `mask_mod` must be True for all
    pairs. Causality, lengths and rules that are arguments of the attention apply to all blocks.

    Parameters
    ----------
    kv_num_blocks : int32 or int64 Tensor ``[B, H, Q_blocks]``
        Number of key blocks of each query block. B and H may be 1, for all batch entries or heads.
    kv_indices : Tensor ``[B, H, Q_blocks, KV_blocks]``
        Key blocks, in the dtype of `kv_num_blocks`. Rows may be shorter than the number of key blocks.
    block_size : int or tuple of int
        Queries and keys per block.
    length : int or tuple of int
        Number of queries and of keys. They need not be multiples of the block size.
    full_kv_num_blocks, full_kv_indices : Tensor, optional
        A second list of the same form. No block may be in both.
    mask_mod : callable, optional
        Function ``(b, h, q_idx, kv_idx) -> Bool`` as for
        :func:`~sparselib.kernels.block_sparse_entmax_attention`; a query attends to all tokens of a block by default.

    Raises
    ------
    ValueError
        If a shape, dtype or device does not match, a count exceeds its row, an index is out of range, or a row lists a block
        twice.

    Notes
    -----
    The constructor checks the numbers in the lists. On a GPU, it waits for the device once.

    Examples
    --------
    >>> import torch
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
    mask_mod: MaskMod | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "block_size", pair("block_size", self.block_size))
        object.__setattr__(self, "length", pair("length", self.length))
        check_lists(self)

    def lists(self) -> list[tuple[Tensor, Tensor]]:
        """Return the list of blocks and, if given, the list of full blocks.

        Returns
        -------
        list of tuple of Tensor
            Counts ``[B, H, Q_blocks]`` and indices ``[B, H, Q_blocks, *]`` of one or two lists.
        """
        partial = [(self.kv_num_blocks, self.kv_indices)]
        return partial if self.full_kv_indices is None else [*partial, (self.full_kv_num_blocks, self.full_kv_indices)]

    @property
    def shape(self) -> tuple[int, int]:
        """Batch size B and heads H of the lists, each possibly 1."""
        return tuple(self.kv_num_blocks.shape[:2])

    @property
    def blocks(self) -> tuple[int, int]:
        """Number of query blocks and key blocks. The last block may be shorter."""
        return tuple(-(-n // size) for n, size in zip(self.length, self.block_size, strict=True))

    @property
    def device(self) -> torch.device:
        """Device of the lists."""
        return self.kv_num_blocks.device

    @property
    def density(self) -> float:
        """Share of all block pairs that are visited; 0 for a mask without pairs."""
        visited = sum(int(counts.sum()) for counts, _ in self.lists())
        return visited / max(1, self.kv_num_blocks.numel() * self.blocks[1])

    def to(self, device: torch.device | str | torch.dtype) -> Self:
        """Return the mask on another device, with the same `mask_mod`, whose own tensors stay where they are.

        Parameters
        ----------
        device : torch.device, str or torch.dtype
            Target device. A dtype changes nothing, as a module's ``to`` leaves integers alone.

        Returns
        -------
        BlockMask
            The same blocks, with tensors on `device`.
        """
        if isinstance(device, torch.dtype):
            return self
        values = (getattr(self, field.name) for field in fields(self))
        return self.unchecked(*(x.to(device) if isinstance(x, Tensor) else x for x in values))

    def to_dense(self) -> Tensor:
        """Return the mask as a boolean tensor.

        Returns
        -------
        Bool Tensor ``[B, H, Q_blocks, KV_blocks]``
            True where a block is visited.
        """
        visits = torch.zeros(*self.shape, *self.blocks, dtype=torch.int8, device=self.device)
        for counts, indices in self.lists():
            listed = within_count(counts, indices)
            visits.scatter_add_(-1, torch.where(listed, indices, 0).long(), listed.to(torch.int8))
        return visits > 0

    @classmethod
    def unchecked(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        block_size: tuple[int, int],
        length: tuple[int, int],
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        mask_mod: MaskMod | None = None,
    ) -> Self:
        """Return a mask without checking its lists, so that a GPU need not wait.

        Use it only for lists that are valid by construction. An index out of range reads memory outside the tensors, and a
        block listed twice counts twice.

        Parameters
        ----------
        kv_num_blocks, kv_indices : Tensor ``[B, H, Q_blocks]``, ``[B, H, Q_blocks, KV_blocks]``
            Counts and indices, as for the class.
        block_size, length : tuple of int
            For queries and for keys; one integer is not accepted here.
        full_kv_num_blocks, full_kv_indices, mask_mod : optional
            A second list, and a rule, as for the class.

        Returns
        -------
        BlockMask
            The mask of these lists.
        """
        mask = object.__new__(cls)
        values = (kv_num_blocks, kv_indices, block_size, length, full_kv_num_blocks, full_kv_indices, mask_mod)
        for field, value in zip(fields(cls), values, strict=True):
            object.__setattr__(mask, field.name, value)
        return mask

    @classmethod
    def from_dense(cls, dense: Tensor, block_size: int | tuple[int, int], length: int | tuple[int, int]) -> Self:
        """Return the mask of a boolean tensor.

        Parameters
        ----------
        dense : Bool Tensor ``[B, H, Q_blocks, KV_blocks]``
            True where a block is visited.
        block_size, length : int or tuple of int
            As for the class.

        Returns
        -------
        BlockMask
            Indices ascend, in rows as wide as the longest list.

        Raises
        ------
        ValueError
            If `dense` is not boolean, or its shape does not match `length` and `block_size`.

        Examples
        --------
        >>> import torch
        >>> BlockMask.from_dense(torch.eye(4, dtype=torch.bool).view(1, 1, 4, 4), 16, 50).density
        0.25
        """
        if dense.dtype != torch.bool or dense.ndim != 4:
            raise ValueError(
                f"`dense` must be a boolean tensor [B, H, Q_blocks, KV_blocks], got {dense.dtype} of shape {tuple(dense.shape)}"
            )
        block_size, length = pair("block_size", block_size), pair("length", length)
        blocks = tuple(-(-n // size) for n, size in zip(length, block_size, strict=True))
        if dense.shape[2:] != blocks:
            raise ValueError(
                f"`dense` must have shape (B, H, {blocks[0]}, {blocks[1]}) for `length` {length} and "
                f"`block_size` {block_size}, got {tuple(dense.shape)}"
            )
        counts = dense.sum(-1, dtype=torch.int32)
        indices = (~dense).to(torch.uint8).argsort(dim=-1, stable=True).to(torch.int32)
        longest = int(counts.max()) if counts.numel() else 0
        return cls.unchecked(counts, indices[..., :longest].contiguous(), block_size, length)

    @classmethod
    def from_flex(cls, mask: flex_attention.BlockMask, *, drop_mask_mod: bool = False) -> Self:
        """Return the blocks of a FlexAttention mask, and its ``mask_mod`` for the partial ones.

        Parameters
        ----------
        mask : torch.nn.attention.flex_attention.BlockMask
            Any FlexAttention mask.
        drop_mask_mod : bool
            Whether to visit partial blocks whole and ignore their ``mask_mod``. For the Triton backend, which has no rules,
            pass the rule to the attention as `causal` or `lengths` instead.

        Returns
        -------
        BlockMask
            A mask that shares the lists of `mask`.

        Examples
        --------
        >>> from torch.nn.attention.flex_attention import create_block_mask
        >>> near = create_block_mask(lambda b, h, q_idx, kv_idx: abs(q_idx - kv_idx) < 20, None, None, 50, 50, "cpu", 16)
        >>> mask = BlockMask.from_flex(near)
        >>> mask.length, mask.mask_mod is near.mask_mod
        ((50, 50), True)
        """
        has_rule = not drop_mask_mod and mask.mask_mod is not flex_attention.noop_mask and mask.kv_num_blocks.any()
        return cls(
            mask.kv_num_blocks,
            mask.kv_indices,
            mask.BLOCK_SIZE,
            mask.seq_lengths,
            mask.full_kv_num_blocks,
            mask.full_kv_indices,
            mask.mask_mod if has_rule else None,
        )

    def to_flex(self) -> flex_attention.BlockMask:
        """Return a FlexAttention mask of the same blocks, all listed as *full* unless there is a `mask_mod`.

        Returns
        -------
        torch.nn.attention.flex_attention.BlockMask
            A mask on the device of this one. For another device, call ``mask.to(device).to_flex()``.

        Notes
        -----
        Uncompiled FlexAttention does not read the lists, so the returned ``mask_mod`` looks up the block of each pair. Compiled
        FlexAttention does not call it for full blocks.
        """
        sizes = self.block_size, self.length
        return flex.of_blocks(*concatenated(self.lists()), self.to_dense(), *sizes, self.mask_mod)
