"""The block lists, token-level rules and tile sizes of one attention call, in the form that each backend takes."""

from torch import Tensor

from .block_mask import BlockMask
from .lists import BlockLists, by_rows, concatenated, dense
from .rules import MaskMod, Rules, ScoreMod, tensors_read
from .tile_sizes import DENSE_BLOCK, TileSizes, tile_sizes
from .visits import Visits

#: Counts and indices of a mask's blocks, then of its full blocks; None for a missing list.
Listed = tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]


def listed(block_mask: BlockMask | None) -> tuple[Listed, tuple[int, int]]:
    """Return a mask's lists and block size; without a mask, no lists, and the block size of dense attention."""
    if block_mask is None:
        return (None,) * 4, (DENSE_BLOCK, DENSE_BLOCK)
    lists = [x for pair in block_mask.lists() for x in pair]
    return (*lists, *[None] * (4 - len(lists))), block_mask.block_size


def rules_of(
    q: Tensor, block_mask: BlockMask | None, mask_mod: MaskMod | None, score_mod: ScoreMod | None
) -> Rules | None:
    """Return the token-level rules of a call and its mask, or None if there are none."""
    mask_mods = tuple(x for x in (mask_mod, block_mask and block_mask.mask_mod) if x is not None)
    if not mask_mods and score_mod is None:
        return None
    return Rules(mask_mods, score_mod, tensors_read(score_mod, q))


def visits_of(
    q: Tensor,
    k: Tensor,
    lists: Listed,
    lengths: Tensor | None,
    block: tuple[int, int],
    causal: bool,
    mask: Tensor | None = None,
    rules: Rules | None = None,
) -> Visits:
    """Return the visits of the gather and support backends."""
    pairs = _pairs(lists)
    visited = BlockLists(*concatenated(pairs), block) if pairs else None
    # The caller may have skipped the check of lengths.
    lengths = None if lengths is None else lengths.long().clamp(max=k.shape[2])
    return Visits(*q.shape[:2], k.shape[1], (q.shape[2], k.shape[2]), visited, causal, lengths, q.device, mask, rules)


def lists_of(q: Tensor, k: Tensor, listed: Listed, block: tuple[int, int], causal: bool) -> BlockLists:
    """Return the lists of the Triton backend."""
    from . import triton_lists

    pairs = _pairs(listed)
    if not pairs:
        return dense((-(-q.shape[2] // block[0]), -(-k.shape[2] // block[1])), block[0], causal, q.device)
    lists, *full = (by_rows(*pair, block) for pair in pairs)
    return triton_lists.both_lists(lists, full[0] if full else None, causal) if causal or full else lists


def _pairs(listed: Listed) -> list[tuple[Tensor, Tensor]]:
    """Return counts and indices of the lists that are not None."""
    return [pair for pair in (listed[:2], listed[2:]) if pair[1] is not None]


def sizes_of(q: Tensor, v: Tensor, block: tuple[int, int]) -> TileSizes:
    """Return the tile sizes for the larger of the two head dimensions."""
    return tile_sizes(block, int(max(q.shape[-1], v.shape[-1])), q.dtype)
