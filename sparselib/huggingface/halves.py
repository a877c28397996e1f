"""The two halves of a text: sequences of the same document stay together, and documents are in random order."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sparselib.huggingface.guarantee import sequences_needed
from sparselib.huggingface.layers import Inputs


@dataclass(frozen=True)
class Half:
    """Some of the sequences, in batches.

    Parameters
    ----------
    batches : list of mappings of Tensors
        The model's inputs.
    groups : Tensor
        Integers ``[N]``: the group of each sequence, numbered from 0 in random order.
    """

    batches: list[Inputs]
    groups: Tensor

    def per_group(self, losses: Tensor) -> Tensor:
        """Average losses ``[..., N]`` over the sequences of each group, and return them in random order: ``[..., G]``."""
        sizes = self.groups.bincount()
        sums = losses.new_zeros(*losses.shape[:-1], len(sizes), dtype=torch.float64)
        return sums.index_add(-1, self.groups, losses.double()) / sizes


def split(
    batches: Sequence[Inputs],
    groups: Iterable[Hashable] | None,
    seed: int,
    allowed: float,
    confidence: float,
    aim: str = "the allowed loss",
) -> tuple[Half, Half]:
    """Shuffle groups of sequences and split them into two halves.

    Parameters
    ----------
    batches : sequence of mappings of Tensors
        The model's inputs.
    groups : iterable, optional
        The group of each sequence, as numbers, texts or a tensor. By default, each sequence is a group of its own.
    seed : int
        Seed of the order.
    allowed, confidence : float
        Allowed loss and confidence, which need a number of groups in the second half.
    aim : str
        What the second half is to certify, for the error.

    Raises
    ------
    ValueError
        If a batch is no mapping of tensors with a row per sequence, an entry of `groups` names no group, there are more or
        fewer entries than sequences, or the second half has too few groups.
    """
    sizes = [_size(number, inputs) for number, inputs in enumerate(batches)]
    names = list(range(sum(sizes)) if groups is None else _names(groups))
    if len(names) != sum(sizes):
        raise ValueError(f"`groups` must have one entry per sequence, got {len(names)} for {sum(sizes)} sequences")
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    middle = len(numbers) // 2
    check_enough(len(numbers) - middle if middle else 0, allowed, confidence, groups is not None, aim)
    order = torch.randperm(len(numbers), generator=torch.Generator().manual_seed(seed))
    places = order[torch.tensor([numbers[name] for name in names])].split(sizes)
    return _half(batches, places, 0, middle), _half(batches, places, middle, len(numbers))


def check_enough(count: int, allowed: float, confidence: float, are_named: bool, aim: str) -> None:
    """Raise ``ValueError`` if so many groups, which are named or single sequences, cannot certify what misses nothing."""
    needed = sequences_needed(allowed, confidence)
    if count < needed:
        argument, unit = ("groups", "groups") if are_named else ("batches", "sequences")
        raise ValueError(
            f"`{argument}` must leave at least {needed} {unit} to calibrate with for {aim} with confidence "
            f"{confidence:.6g}, got {count} in the second half; pass at least {2 * needed} in all"
        )


def _names(groups: Iterable[Hashable]) -> list[Hashable]:
    """Return each sequence's group as a value that equals itself; raise ``ValueError`` for what names no group."""
    names = []
    for number, entry in enumerate(groups):
        # Tensors and arrays of one number compare by identity or not at all.
        name = entry.item() if getattr(entry, "ndim", None) == 0 and hasattr(entry, "item") else entry
        try:
            is_name = name is not None and bool(name == name) and isinstance(hash(name), int)
        except (TypeError, ValueError, RuntimeError):
            is_name = False
        if not is_name or isinstance(name, Tensor):
            raise ValueError(
                f"`groups[{number}]` must name the document of a sequence, by a number or a text, got {entry!r:.80}"
            )
        names.append(name)
    return names


def _half(batches: Sequence[Inputs], places: Sequence[Tensor], start: int, end: int) -> Half:
    """Return the sequences whose group has a place from `start` to before `end`."""
    kept = [((start <= place) & (place < end)).nonzero()[:, 0] for place in places]
    return Half(
        [_rows(inputs, rows) for inputs, rows in zip(batches, kept, strict=True) if len(rows)],
        torch.cat([place[rows] - start for place, rows in zip(places, kept, strict=True)]),
    )


def _rows(inputs: Inputs, rows: Tensor) -> Inputs:
    size = len(next(iter(inputs.values())))
    return {name: x[rows.to(x.device)] if len(x) == size else x for name, x in inputs.items()}


def _size(number: int, inputs: Inputs) -> int:
    """Return how many sequences a batch has; raise ``ValueError`` if it is no mapping of tensors with a row for each."""
    if not isinstance(inputs, Mapping) or not inputs:
        given = "an empty one" if isinstance(inputs, Mapping) else type(inputs).__name__
        raise ValueError(
            f"`batches[{number}]` must be a mapping from argument names to tensors, got {given}; pass "
            '{"input_ids": ids} for ids alone'
        )
    size = 0
    for name, x in inputs.items():
        if not isinstance(x, Tensor):
            raise ValueError(f"`batches[{number}][{name!r}]` must be a Tensor, got {type(x).__name__}")
        rows = len(x) if x.dim() else 0
        size = size or rows
        # One row serves all sequences, such as that of positions.
        if rows not in (1, size):
            raise ValueError(f"`batches[{number}][{name!r}]` must have {size or 'some'} rows or one, got {rows}")
    return size
