"""Extremely Sparse Transformer's claims about character language models (section 6.3); tests get the task's folder.

A claim holds if it holds on every corpus.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from replication.claims.finding import Effect, Finding, Test, registering
from replication.claims.scores import Units, effect, means, over_seeds, plain
from replication.files.reading import read_table
from replication.results.measurements import SPAN_MODELS, read_characters
from replication.results.points import spans_at_bits

TESTS: dict[str, Test] = {}
_claim = registering(TESTS)

#: Bits per character ``[1 + R]`` by model and seed.
Bits = dict[tuple[str, int], np.ndarray]


def every_corpus(models: list[str], kind: str = "measured.csv") -> Callable:
    """Return a decorator that turns a test of one corpus into a test of every corpus.

    Parameters
    ----------
    models : list of str
        Models that the test needs. Corpora that lack one are reported as missing.
    kind : str
        File of each model, ``measured.csv`` or ``log.csv``. The test gets the corpus' folder and table.
    """

    def with_tables(test: Callable[[Path, pd.DataFrame], list[Effect]]) -> Test:
        def tested(folder: Path) -> Finding:
            tables = read_characters(folder, kind, models)
            effects, without = [], []
            for corpus, table in tables.groupby("corpus"):
                missing = set(models) - set(table["model"])
                if missing:
                    without.append(f"{corpus} has no {', '.join(sorted(missing))}")
                else:
                    effects += [replace(e, what=f"{corpus}: {e.what}") for e in test(folder / corpus, table)]
            return Finding(effects, without) if effects else Finding([], missing=without)

        return tested

    return with_tables


def _bits(corpus: Path, table: pd.DataFrame) -> tuple[Bits, Units | None]:
    """Return the bits, and the units of the resamples: segments of the test text, if their bits were stored."""
    bits, units = {}, None
    for row in table.itertuples():
        path = corpus / "models" / row.model / f"seed{row.seed}" / "segments.parquet"
        if path.exists():
            segments = read_table(path)
            bits[row.model, row.seed] = means(segments["bits"].to_numpy(), segments["characters"].to_numpy())
            units = Units(len(segments), "segments")
        else:
            bits[row.model, row.seed] = np.array([row.bits_per_character])
    return bits, units


def saved(corpus: Path, table: pd.DataFrame, worse: str, better: str) -> Effect:
    """Return by how many bits ``better`` is below ``worse``."""
    bits, units = _bits(corpus, table)
    seeds = sorted(set.intersection(*({seed for model, seed in bits if model == name} for name in (worse, better))))
    saved = np.stack([bits[worse, seed] - bits[better, seed] for seed in seeds], axis=1)
    return effect(f"{worse} - {better}, bits", saved, "model", units)


def _positions(table: pd.DataFrame) -> pd.DataFrame:
    return table.pivot(index="seed", columns="model", values="attended_positions")


@_claim("clm-xl-beats-block")
@every_corpus(["block", "transformer-xl"])
def clm_xl_beats_block(corpus: Path, table: pd.DataFrame) -> list[Effect]:
    return [saved(corpus, table, "block", "transformer-xl")]


@_claim("clm-span-beats-xl")
@every_corpus(["transformer-xl", "adaptive-span"])
def clm_span_beats_xl(corpus: Path, table: pd.DataFrame) -> list[Effect]:
    """Compare both bits and attended positions."""
    positions = _positions(table)
    fewer = 1 - positions["adaptive-span"] / positions["transformer-xl"]
    return [
        saved(corpus, table, "transformer-xl", "adaptive-span"),
        over_seeds("share of positions saved", fewer, "model"),
    ]


@_claim("clm-xl-top-k-no-worse")
@every_corpus(["transformer-xl", "transformer-xl-top-k"])
def clm_xl_top_k_no_worse(corpus: Path, table: pd.DataFrame) -> list[Effect]:
    return [saved(corpus, table, "transformer-xl", "transformer-xl-top-k")]


@_claim("clm-span-top-8-no-worse")
@every_corpus(["adaptive-span", "adaptive-span-top-8"])
def clm_span_top_8_no_worse(corpus: Path, table: pd.DataFrame) -> list[Effect]:
    return [saved(corpus, table, "adaptive-span", "adaptive-span-top-8")]


@_claim("clm-span-top-8-fewer-positions")
@every_corpus(["adaptive-span", "adaptive-span-top-8"])
def clm_span_top_8_fewer_positions(corpus: Path, table: pd.DataFrame) -> list[Effect]:
    positions = _positions(table)
    return [over_seeds("times fewer positions", positions["adaptive-span"] / positions["adaptive-span-top-8"], "model")]


@_claim("clm-top-k-shrinks-spans")
@every_corpus(SPAN_MODELS, "log.csv")
def clm_top_k_shrinks_spans(corpus: Path, table: pd.DataFrame) -> list[Effect]:
    """Average over the levels of bits that all runs reach; compare softmax to Top-32, and Top-32 to Top-8."""
    spans = spans_at_bits(table)
    softmax, top_32, top_8 = (spans.loc[name] for name in SPAN_MODELS)
    return [
        over_seeds("span saved by Top-32", (1 - top_32 / softmax).mean(axis=1), "model"),
        over_seeds("span saved by Top-8 beyond Top-32", (1 - top_8 / top_32).mean(axis=1), "model"),
    ]


@_claim("clm-top-8-halves-spans")
@every_corpus(SPAN_MODELS, "log.csv")
def clm_top_8_halves_spans(corpus: Path, table: pd.DataFrame) -> list[Effect]:
    """Average over the levels of bits that all runs reach."""
    spans = spans_at_bits(table)
    share = (spans.loc["adaptive-span-top-8"] / spans.loc["adaptive-span"]).mean(axis=1)
    return [over_seeds("Top-8's span / softmax's", share, "model")]


@_claim("clm-top-8-better-at-equal-span")
@every_corpus(SPAN_MODELS, "log.csv")
def clm_top_8_better_at_equal_span(corpus: Path, table: pd.DataFrame) -> list[Effect]:
    """Compare at the widest span that both softmax and Top-8 reach: the share of softmax's bits that Top-8 saves."""
    saved, widest = [], []
    for _, of_seed in table.groupby("seed"):
        logs = [of_seed[of_seed["model"] == name] for name in ("adaptive-span", "adaptive-span-top-8")]
        span = min(log["mean_span"].max() for log in logs)
        if span >= max(log["mean_span"].min() for log in logs):
            softmax, top_8 = (bits_at_span(log, span) for log in logs)
            saved.append(1 - top_8 / softmax)
            widest.append(span)
    return [over_seeds(f"bits saved at a span of {np.mean(widest):.0f}", saved, "model")] if saved else []


def bits_at_span(log: pd.DataFrame, span: float) -> float:
    """Return the best bits per character with a mean span up to ``span``, interpolated between rows of the log.

    The bits at which the span is first reached would not do: spans that start wide pass it in the first training steps.
    """
    by_span = log.sort_values("mean_span")
    return float(np.interp(span, by_span["mean_span"], by_span["valid_bits"].cummin()))


#: Bits per character of adaptive span with top-8 in Table 3.
PRINTED = {"enwik8": 1.02, "text8": 1.11}


def _printed_bits(corpus: str, value: float) -> Test:
    def tested(folder: Path) -> Finding:
        table = read_characters(folder, "measured.csv")
        table = table[(table["corpus"] == corpus) & (table["model"] == "adaptive-span-top-8")]
        if table.empty:
            return Finding([], missing=[f"no model of {corpus}"])
        bits = table["bits_per_character"].mean()
        return Finding([plain(f"measured {bits:.3f}", abs(bits - value), f"{len(table)} models")])

    return tested


for _corpus, _value in PRINTED.items():
    _claim(f"clm-bits-{_corpus}")(_printed_bits(_corpus, _value))
