"""Laws that every predictor obeys: what the workflow relies on, checked on a few random batches."""

import random
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, fields
from itertools import product

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from sparselib.predictors import Predictor

#: Batch size, heads, tokens and dimension of the random queries and keys.
BATCH, HEADS, TOKENS, DIMENSION = 3, 2, 12, 4
LENGTHS = [12, 5, 1]


def broken_laws(predictor: Predictor) -> list[str]:
    """Return a sentence for each law that a predictor breaks; none if it can be trusted with any batch.

    Parameters
    ----------
    predictor : Predictor
        For :data:`HEADS` heads and :data:`DIMENSION` dimensions, if it has centroids.
    """
    found = []
    for law in LAWS:
        try:
            found += law(predictor)
        except Exception as error:  # A user's predictor may fail in any way.
            found.append(f"{law.__doc__} It raised {type(error).__name__}: {error}")
    return found


def drawn(tokens: int = TOKENS, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Return random queries and keys ``[B, H, n, D]``."""
    generator = torch.Generator().manual_seed(0)
    shape = (BATCH, HEADS, tokens, DIMENSION)
    return tuple(torch.randn(shape, generator=generator, dtype=dtype) for _ in range(2))


def _selects_visible_pairs(predictor: Predictor) -> Iterator[str]:
    """It returns Bool[B, H, n, n], with no padded and no future pair."""
    q, k = drawn()
    for causal, lengths in product((False, True), (None, LENGTHS)):
        mask = predictor.predict(q, k, lengths=lengths, causal=causal)
        inside = torch.arange(TOKENS) < torch.tensor(lengths or [TOKENS] * BATCH)[:, None]
        visible = inside[:, None, :, None] & inside[:, None, None, :]
        visible = visible.tril() if causal else visible
        if mask.dtype != torch.bool or mask.shape != (BATCH, HEADS, TOKENS, TOKENS) or (mask & ~visible).any():
            yield f"{_selects_visible_pairs.__doc__} Not with lengths={lengths}, causal={causal}."


def _ignores_padding(predictor: Predictor) -> Iterator[str]:
    """What the padding holds, and how much of it there is, changes nothing."""
    q, k = drawn()
    for causal in (False, True):
        expected = predictor.predict(q, k, lengths=LENGTHS, causal=causal)
        for garbage in (0.0, 1e30, torch.nan, -torch.inf):
            longer = [pad(x, (0, 0, 0, 7), value=garbage) for x in (q, k)]
            for x, (b, length) in product(longer, enumerate(LENGTHS)):
                x[b, :, length:] = garbage
            found = predictor.predict(*longer, lengths=LENGTHS, causal=causal)
            if not torch.equal(found[:, :, :TOKENS, :TOKENS], expected) or found[:, :, TOKENS:].any():
                yield f"{_ignores_padding.__doc__} Not for padding of {garbage}, causal={causal}."


def _takes_no_lengths_for_full(predictor: Predictor) -> Iterator[str]:
    """Without lengths, all sentences are full."""
    q, k = drawn()
    if not torch.equal(predictor.predict(q, k), predictor.predict(q, k, lengths=[TOKENS] * BATCH)):
        yield _takes_no_lengths_for_full.__doc__


def _skips_empty_sentences(predictor: Predictor) -> Iterator[str]:
    """A sentence of length 0 has no pair, and changes no other sentence."""
    q, k = drawn()
    found = predictor.predict(q, k, lengths=[0, 12, 4])
    # Draws of a batch may depend on which sentences are in it, but not on what stands in the empty one.
    other = predictor.predict(q.index_fill(0, torch.tensor([0]), 7.0), k, lengths=[0, 12, 4])
    if found[0].any() or not torch.equal(found, other):
        yield _skips_empty_sentences.__doc__


def _has_no_hidden_state(predictor: Predictor) -> Iterator[str]:
    """The same input gives the same pairs, and no global random generator moves."""
    q, k = drawn()
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    first, again = predictor.predict(q, k), predictor.predict(q, k)
    after = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    if not (torch.equal(first, again) and torch.equal(before[0], after[0]) and before[1:] == after[1:]):
        yield _has_no_hidden_state.__doc__


def _leaves_inputs_alone(predictor: Predictor) -> Iterator[str]:
    """It takes queries and keys of any float type that need gradients, and changes neither."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        q, k = (x.requires_grad_() for x in drawn(dtype=dtype))
        kept = q.detach().clone(), k.detach().clone()
        mask = predictor.predict(q, k)
        if mask.dtype != torch.bool or not all(map(torch.equal, (q, k), kept)):
            yield f"{_leaves_inputs_alone.__doc__} Not in {dtype}."


def _is_frozen(predictor: Predictor) -> Iterator[str]:
    """Its fields cannot be set, so that a stored result names what made it."""
    for field in fields(predictor):
        try:
            setattr(predictor, field.name, 1)
        except FrozenInstanceError:
            continue
        yield f"{_is_frozen.__doc__} Not {field.name}: use @dataclass(frozen=True)."


def _refuses_bad_input(predictor: Predictor) -> Iterator[str]:
    """Values that are not finite, wrong lengths and other shapes are refused with ValueError."""
    q, k = drawn()
    bad = q.clone()
    bad[1, 1, 2, 3] = torch.nan
    cases = {
        "NaN in q": lambda: predictor.predict(bad, k),
        "infinity in k": lambda: predictor.predict(q, bad.nan_to_num(torch.inf)),
        "negative lengths": lambda: predictor.predict(q, k, lengths=[-1, 3, 3]),
        "lengths above n": lambda: predictor.predict(q, k, lengths=[3, 3, TOKENS + 1]),
        "too few lengths": lambda: predictor.predict(q, k, lengths=[3, 3]),
        "k of another batch": lambda: predictor.predict(q, k[:2]),
        "k of other heads": lambda: predictor.predict(q, k[:, :1]),
        "k of another dimension": lambda: predictor.predict(q, pad(k, (0, 1))),
    }
    for name, call in cases.items():
        try:
            call()
        except ValueError:
            continue
        yield f"{_refuses_bad_input.__doc__} Not {name}: RowWise.predict checks this."


LAWS: tuple[Callable[[Predictor], Iterator[str]], ...] = (
    _selects_visible_pairs,
    _ignores_padding,
    _takes_no_lengths_for_full,
    _skips_empty_sentences,
    _has_no_hidden_state,
    _leaves_inputs_alone,
    _is_frozen,
    _refuses_bad_input,
)
