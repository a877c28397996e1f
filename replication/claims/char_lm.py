"""What Extremely Sparse Transformer claims about character language models (section 6.3); a test gets the folder of that task.

A claim holds if it holds on every corpus and for every seed; its deciding number is that of the corpus that decides.
"""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from replication.claims.finding import Finding, Test, registering
from replication.results import SPAN_MODELS, read_characters, spans_at_bits, spread

#: "No more bits": at most so many more, as the paper prints two decimals.
NO_MORE = 0.01
#: Positions of adaptive span for each of its top-8: 39.25 on text8, 48.75 on enwik8.
FEWER = 39
#: "Half of the span size": the published cells are 0.48 to 0.52 of those of softmax.
HALF = 0.55

TESTS: dict[str, Test] = {}
_claim = registering(TESTS)


def _every_corpus(
    models: list[str], kind: str = "measured.csv", worst: Callable = min
) -> Callable[[Callable[[pd.DataFrame], Finding]], Test]:
    """Test the tables of these models corpus by corpus; the deciding number of a seed is the ``worst`` of the corpora."""

    def with_tables(test: Callable[[pd.DataFrame], Finding]) -> Test:
        def tested(folder: Path) -> Finding | None:
            tables = read_characters(folder, kind)
            tables = tables[tables["model"].isin(models)]
            if set(tables["model"]) != set(models):
                return None
            found = {corpus: test(table) for corpus, table in tables.groupby("corpus")}
            numbers = "; ".join(f"{corpus}: {finding.numbers}" for corpus, finding in found.items())
            if any(finding.holds is None for finding in found.values()):
                return Finding(None, [], numbers)
            per_seed = [worst(seed) for seed in zip(*(finding.per_seed for finding in found.values()), strict=True)]
            return Finding(all(finding.holds for finding in found.values()), per_seed, numbers)

        return tested

    return with_tables


def _spread(values: pd.Series) -> str:
    """A single model has no standard deviation."""
    return spread(values) if len(values) > 1 else f"{values.item():.4f}"


def _gain(table: pd.DataFrame, worse: str, better: str) -> tuple[pd.Series, pd.Series, str]:
    """Bits that ``better`` is below ``worse``, and its share of the positions of ``worse``, both ``[seed]``; both in words."""
    wide = table.pivot(index="seed", columns="model", values=["bits_per_character", "attended_positions"])
    bits, positions = wide["bits_per_character"], wide["attended_positions"]
    in_words = ", ".join(
        f"{name} {_spread(bits[name])} bits at {positions[name].mean():.1f} positions" for name in (worse, better)
    )
    return bits[worse] - bits[better], positions[better] / positions[worse], in_words


@_claim("clm-xl-beats-block")
@_every_corpus(["block", "transformer-xl"])
def _(table: pd.DataFrame) -> Finding:
    gained, _, numbers = _gain(table, "block", "transformer-xl")
    return Finding(bool((gained > 0).all()), gained.tolist(), numbers)


@_claim("clm-span-beats-xl")
@_every_corpus(["transformer-xl", "adaptive-span"])
def _(table: pd.DataFrame) -> Finding:
    """In bits and in positions."""
    gained, share, numbers = _gain(table, "transformer-xl", "adaptive-span")
    return Finding(bool((gained > 0).all() and (share < 1).all()), gained.tolist(), numbers)


@_claim("clm-xl-top-k-no-worse")
@_every_corpus(["transformer-xl", "transformer-xl-top-k"])
def _(table: pd.DataFrame) -> Finding:
    """No more bits, with fewer positions."""
    gained, share, numbers = _gain(table, "transformer-xl", "transformer-xl-top-k")
    return Finding(bool((gained >= 0).all() and (share < 1).all()), gained.tolist(), numbers)


@_claim("clm-span-top-8-no-worse")
@_every_corpus(["adaptive-span", "adaptive-span-top-8"])
def _(table: pd.DataFrame) -> Finding:
    gained, _, numbers = _gain(table, "adaptive-span", "adaptive-span-top-8")
    return Finding(bool((gained >= -NO_MORE).all()), gained.tolist(), numbers)


@_claim("clm-span-top-8-fewer-positions")
@_every_corpus(["adaptive-span", "adaptive-span-top-8"])
def _(table: pd.DataFrame) -> Finding:
    """Untested where the longest span has no room for so many positions."""
    _, share, numbers = _gain(table, "adaptive-span", "adaptive-span-top-8")
    ratio = 1 / share
    if table["memory_length"].max() < FEWER * 8:
        return Finding(None, [], f"spans are at most {table['memory_length'].max()}; {numbers}")
    return Finding(bool((ratio >= FEWER).all()), ratio.tolist(), f"{_spread(ratio)} times fewer; {numbers}")


@_claim("clm-top-k-shrinks-spans")
@_every_corpus(SPAN_MODELS, "log.csv")
def _(table: pd.DataFrame) -> Finding:
    """At every level of bits that all runs reached, by their order from softmax to top-8."""
    spans = spans_at_bits(table)
    softmax, top_32, top_8 = (spans.loc[name] for name in SPAN_MODELS)
    margin = pd.concat([softmax - top_32, top_32 - top_8], axis=1).min(axis=1)
    return Finding(bool((margin > 0).all()), margin.tolist(), _last_level(spans))


@_claim("clm-top-8-halves-spans")
@_every_corpus(SPAN_MODELS, "log.csv", max)
def _(table: pd.DataFrame) -> Finding:
    """In the mean over those levels."""
    spans = spans_at_bits(table)
    share = (spans.loc["adaptive-span-top-8"] / spans.loc["adaptive-span"]).mean(axis=1)
    return Finding(bool((share <= HALF).all()), share.tolist(), f"{_spread(share)} of the span; {_last_level(spans)}")


def _last_level(spans: pd.DataFrame) -> str:
    bits = spans.columns[-1]
    in_words = ", ".join(f"{name} {_spread(spans.loc[name, bits])}" for name in SPAN_MODELS)
    return f"mean span at {bits} bits: {in_words}"


def _bits(corpus: str) -> Test:
    """Bits of top-8 on a corpus that the paper has a number of."""

    def tested(folder: Path) -> Finding | None:
        table = read_characters(folder, "measured.csv")
        chosen = (table["corpus"] == corpus) & (table["model"] == "adaptive-span-top-8")
        bits = table.loc[chosen, "bits_per_character"]
        return Finding(None, bits.tolist(), f"measured {_spread(bits)}") if len(bits) else None

    return tested


TESTS |= {f"clm-bits-{corpus}": _bits(corpus) for corpus in ("enwik8", "text8")}
