"""Ranges of the numbers in tables, by column."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

SHARES = (
    "recall",
    "precision",
    "exact",
    "sparsity",
    "gold_sparsity",
    "density",
    "share",
    "mass",
    "chance",
    "on_the_end",
)
PERPLEXITIES = ("perplexity", "ppl")
#: Sums and means over what is counted or timed.
AMOUNTS = """loss nll_loss held_out_loss nats bits bits_per_character train_bits valid_bits drift entropy
seconds attention_seconds prediction_seconds model_seconds normalizer_seconds training_seconds
train_tokens_per_second decode_tokens_per_second decoded_tokens bytes parameters learning_rate
attended attended_encoder attended_decoder attended_cross attended_positions mean_span
sentences sequence words reference_words tokens masked_tokens characters count step""".split()
#: By column: the smallest and the largest value that the quantity can have.
RANGES = (
    dict.fromkeys(SHARES, (0, 1))
    | dict.fromkeys(PERPLEXITIES, (1, inf))
    | dict.fromkeys(AMOUNTS, (0, inf))
    | {"bleu": (0, 100), "cosine": (-1, 1)}
)
#: Rounding error of means in single precision.
ROUNDING = 1e-5


def check_ranges(path: Path, table: DataFrame) -> None:
    """Check that a table's numbers are values that their quantities can have; a recall, for example, is from 0 to 1.

    Raises
    ------
    ValueError
        If one is not; the error names file, column and row.
    """
    for column in table.columns.intersection(list(RANGES), sort=False):
        lowest, highest = RANGES[column]
        values = table[column]
        if values.dtype.kind not in "iuf":
            continue
        outside = (values < lowest - ROUNDING) | (values > highest + ROUNDING)
        if outside.any():
            row = int(outside.to_numpy().argmax())
            expected = f"at least {lowest}" if highest == inf else f"from {lowest} to {highest}"
            raise ValueError(f"{path}: column {column} of row {row} must be {expected}, got {values.iloc[row]:g}")
