"""Ten sentences on what the stored runs show, each followed by the numbers behind it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from replication.claims.comparison import in_words, leads
from replication.claims.curves import BASELINES
from replication.claims.finding import SETTLED
from replication.claims.masked_lm import DISTANCE, KMEANS, ROUTING, nats_curves, recall_curves
from replication.claims.overview import effect as effect_of
from replication.claims.rule import Rule
from replication.claims.scores import over_seeds
from replication.claims.stability import stability
from replication.files.paths import ROOT
from replication.tables.claims import DECIDED, evidence, lost_at_gold, stable
from replication.tables.regimes import FINE_TUNED, configuration, regime


@cache
def compared(folder: Path, leader: str, rivals: tuple[str, ...], budget: str) -> str:
    """Return a leader's differences in recall to the rivals that a stored run measures at a budget, and their stability."""
    curves = recall_curves(folder)
    place = curves.named(budget)
    measured = [name for name in (leader, *rivals) if place and name in curves.methods and curves.has(name, place)]
    if len(measured) < 2 or measured[0] != leader:
        return ""
    finding, rule = leads(curves, [leader], measured[1:], [budget]), Rule(">=", 0.0)
    verdict, _ = rule.judge(finding)
    words = [f"{effect.what.partition(' - ')[2]} {in_words(effect)}" for effect in finding.every_effect()]
    return f"{', '.join(words)}; {stability(rule, finding, verdict) if verdict in SETTLED else verdict}"


def _encoders() -> dict[str, Path]:
    """Return the folders of stored runs with a fine-tuned encoder and its sweep."""
    found = {path.parts[-3]: path.parent for path in sorted(ROOT.glob("reported/*/masked_lm/sweep"))}
    claim = "mlm-recall-distance-first"
    return {run: path for run, path in found.items() if regime(claim, configuration(run)) == FINE_TUNED}


def _translators() -> dict[str, Path]:
    found = sorted(ROOT.glob("reported/*/translation/*/sweep"))
    return {f"{path.parts[-4]} {path.parts[-2]}": path.parent for path in found}


def _differences(folders: dict[str, Path], leader: str, rivals: tuple[str, ...], *budgets: str) -> str:
    """Return the differences at budgets in words, in points of recall: all of them, a run after the other."""
    found = [
        f"{run} at {budget} ({words})"
        for run, folder in folders.items()
        for budget in budgets
        if (words := compared(folder, leader, rivals, budget))
    ]
    return f"Points of recall, {leader} less each: {', '.join(found)}"


def _over_models(
    folders: dict[str, Path], leader: str, rivals: tuple[str, ...], *budgets: str, read: Callable | None = None
) -> str:
    """Return the mean over models of a leader's difference to each rival at budgets, with the interval over such models."""
    compared = {run: (read or recall_curves)(folder) for run, folder in folders.items()}
    words = []
    for budget in budgets:
        for rival in rivals:
            means = [
                curves.difference(leader, rival, place)[0].mean()
                for curves in compared.values()
                if (place := curves.named(budget))
                and all(name in curves.methods and curves.has(name, place) for name in (leader, rival))
            ]
            if len(means) > 1:
                words.append(
                    f"{rival} {in_words(over_seeds(rival, means, 'model'))} over {len(means)} models at {budget}"
                )
    what = f"Points of recall, {leader} less each" if read is None else f"Nats that each has more than {leader}"
    return f"{what}: {', '.join(words)}"


def _rows(*claims: str) -> str:
    """Return the verdicts and effects of claims in all runs that decide them."""
    return "; ".join(
        f"{run}: {row['verdict']}, {effect_of(row, row['unit'])}"
        for claim in claims
        for run, table in evidence().items()
        if claim in table.index and (row := table.loc[claim])["verdict"] in DECIDED
    )


def _untested() -> str:
    curves = [
        row["verdict"]
        for table in evidence().values()
        for _, row in table.iterrows()
        if row["budgets"] and row["numbers"] not in ("not measured here", "judged by an earlier rule; run it again")
    ]
    return f"{curves.count('untested')} of {len(curves)} rows about curves are untested. {stable().removesuffix('.')}"


def findings() -> str:
    """Return a numbered list, sentences in bold and the numbers behind each of them, and how much has a verdict."""
    encoders, translators, window = _encoders(), _translators(), ("window",)
    said = [
        ("The gold graph is exact: masking a model with it changes nothing.",
         _rows("sparse-consistency", "mt-sparse-consistency")),
        ("With five times the gold graph's pairs, distance recalls more than each rival in fine-tuned encoders; with its own"
         " share of them, distance is hardly ahead of the plain window, and not ahead of k-means.",
         f"{_over_models(encoders, DISTANCE, (KMEANS, ROUTING, *BASELINES), '5 x gold')};"
         f" {_over_models(encoders, DISTANCE, (*window, KMEANS), '1 x gold').partition(': ')[2]}. In single models:"
         f" {_differences(encoders, DISTANCE, window, '1 x gold').partition(': ')[2]}"),
        ("K-means is ahead of Routing Transformer with the gold graph's share of the pairs, and not with more.",
         _over_models(encoders, KMEANS, (ROUTING,), "1 x gold", "2 x gold", "5 x gold")),
        ("With two and five times as many pairs, masked models lose fewer nats under distance than under the window, BigBird,"
         " Longformer and quantization; with the gold graph's own share no order is decided.",
         _over_models(encoders, DISTANCE, (KMEANS, ROUTING, *BASELINES), "1 x gold", "2 x gold", "5 x gold", read=nats_curves)),
        ("K-means does not avoid queries without any key: without windows and global tokens it leaves about four fifths of"
         " the queries with none, and more than Routing Transformer with 32 or 64 clusters.",
         f"k-means: {_rows('mlm-kmeans-avoids-queries-without-keys')}; Routing Transformer above k-means:"
         f" {_rows('mlm-routing-discards-queries')}"),
        ("In translation with twice the gold graph's pairs, distance recalls more than every baseline; with its own share of"
         " them, distance is hardly ahead of the window on Darby's verses in French, and clearly ahead in German and on"
         " Multi30k's captions.", f"{_differences(translators, DISTANCE, (ROUTING, *BASELINES), '2 x gold')};"
         f" {_differences(translators, DISTANCE, window, '1 x gold').partition(': ')[2]}"),
        ("Neither distance nor k-means is on par with the full translator there.", lost_at_gold().removesuffix(".")),
        ("Two predicted blocks beat 22 random ones only under softmax, with which no model was trained.",
         f"softmax: {_rows('blocks-two-beat-22-of-bigbird')}; the model's own entmax:"
         f" {_rows('blocks-two-beat-22-of-bigbird-with-entmax')}"),
        ("Training with Top-8 does not help small translators.", _rows("est-top-8-beats-full")),
        ("Whether the first layers are the local ones differs between encoders: the first layer of MiniLM is the least local"
         " one.", _rows("mlm-first-layers-are-local")),
    ]  # fmt: skip
    listed = "\n".join(f"{number}. **{sentence}** {numbers}." for number, (sentence, numbers) in enumerate(said, 1))
    undecided = "Outside the fine-tuned encoders most grids are too coarse for a verdict on the order of the methods"
    return f"{listed}\n\n{undecided}: {_untested()}."
