"""Attention forms on real text: Table 1 of Extremely Sparse Transformer on Multi30k, and Darby's verses and chapters."""

import math

import pandas as pd

from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.results.measurements import FORMS, read_cross_attention, read_forms
from replication.results.points import as_trained, by_budget
from replication.tables.markers import markdown

FOLDER = ROOT / "reported" / "multi30k-forms" / "forms" / "sentences" / "fr-en"
DARBY = ROOT / "reported" / "darby-forms" / "forms" / "sentences" / "fr-en"
CHAPTERS = ROOT / "reported" / "darby-documents" / "forms" / "documents" / "fr-en"


def measured() -> pd.DataFrame:
    """Return the BLEU of every translator on Multi30k."""
    return read_forms(FOLDER)


def table1() -> str:
    """Return the BLEU of each form and budget, with the spread over seeds and the paper's IWSLT17 Fr-En in brackets."""
    table = as_trained(measured())
    budgets = sorted(table["budget"].dropna().unique(), reverse=True)
    means = by_budget(measured())
    seeds = table.groupby(["form", table["budget"].fillna(0)])["bleu"]
    spread = seeds.std()
    paper = read_table(ROOT / "config" / "published" / "extremely_sparse_table1.csv")
    paper = paper[paper["dataset"] == "IWSLT17 Fr-En"].set_index("method")
    rows = []
    for form in [form for form in means.index if form != "Full"]:
        cells = [_cell(means.loc[form, k], spread[form, k], paper[f"k{k:.0f}"].get(form, math.nan)) for k in budgets]
        printed = paper[[f"k{k:.0f}" for k in budgets]].mean(axis=1, skipna=False).get(form, math.nan)
        rows.append([form, *cells, _cell(means.loc[form, budgets].mean(skipna=False), math.nan, printed)])
    full = _cell(means.loc["Full", "full"], spread["Full", 0], paper.loc["Full", "k_full"])
    return markdown(
        ["trained and tested with it", *(f"k = {k:.0f}" for k in budgets), "mean"],
        [["Full, without a budget", *[""] * len(budgets), full], *rows],
    )


def tested_fully() -> str:
    """Return the same models' BLEU when they translate with full attention."""
    table = measured()
    table = table[(table["tested_with"] == "Full") & (table["form"] != "Full")]
    table = table.pivot_table(index="form", columns="budget", values="bleu")
    budgets = sorted(table.columns, reverse=True)
    rows = [[form, *(f"{table.loc[form, k]:.1f}" for k in budgets)] for form in FORMS if form in table.index]
    return markdown(["tested attending fully", *(f"k = {k:.0f}" for k in budgets)], rows)


def darby() -> str:
    """Return each form's BLEU on Darby's verses and the word alignment of its top layer's cross-attention, over seeds."""
    layers = read_cross_attention(DARBY)
    top = layers[layers["layer"] == layers["layer"].max()]
    rows = []
    for form, tested in read_forms(DARBY).groupby("form", sort=False):
        bleu = {name: part["bleu"] for name, part in tested.groupby("tested_with")}
        attention = 100 * top.loc[top["form"] == form, ["aligned_words", "aligned_mass", "on_the_end"]]
        columns = [bleu[form], bleu["Full"], *(attention[name] for name in attention)]
        seeds = tested["seed"].nunique()
        rows.append([f"{form}, {seeds} models", *(_cell(values.mean(), values.std(), math.nan) for values in columns)])
    heads = ["BLEU", "BLEU attending fully", "words aligned, %", "weight at counterparts, %", "weight on the end, %"]
    return markdown(["trained with", *heads], rows)


def chapters() -> str:
    """Return each form's BLEU on blocks of Darby's chapters, and the positions that its queries attend to, over seeds."""
    rows = []
    for form, runs in as_trained(read_forms(CHAPTERS)).groupby("form", sort=False):
        attended = (f"{runs[f'attended_{place}'].mean():.1f}" for place in ("encoder", "decoder", "cross"))
        name = f"{form}, {runs['seed'].nunique()} models"
        rows.append([name, _cell(runs["bleu"].mean(), runs["bleu"].std(), math.nan), *attended])
    heads = ["BLEU", "attended in the encoder", "in the decoder", "in cross-attention"]
    return markdown(["trained and tested with", *heads], rows)


def _cell(mean: float, spread: float, printed: float) -> str:
    """Format a mean, with its standard deviation and the paper's number unless they are NaN."""
    around = "" if math.isnan(spread) else f" ± {spread:.1f}"
    beside = "" if math.isnan(printed) else f" ({printed:.1f})"
    return f"{mean:.1f}{around}{beside}"
