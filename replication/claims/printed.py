"""The papers' printed tables in the format of a run, so that the same rules judge the papers' own numbers."""

from pathlib import Path

import pandas as pd
import yaml

from replication.claims import judge
from replication.claims.char_lm import PRINTED as BITS
from replication.files.storage import replacing

#: Claims that the paper's own printed table contradicts, and how.
CONTRADICTIONS = {
    "clm-top-8-better-at-equal-span": "Table 4: at a span of 193 softmax has 1.33 bits, Top-8 1.10, which is 17 % less",
}
#: Claims that another paper's printed table contradicts, and how.
BETWEEN_PAPERS = {
    "est-top-8-beats-full": "Table 1 of Extremely Sparse Transformer, WMT16 En-Ro: 33.61 with k = 8, 33.73 with full attention",
    "est-k-8-is-best": "Table 1 of Extremely Sparse Transformer, WMT16 En-Ro: 33.61 with k = 8, 33.99 with k = 16",
}
#: Claims that a paper cannot confirm, because they are arithmetic or compare a printed number to itself.
CIRCULAR = {
    "mlm-gold-sparsity",
    "mlm-perplexity",
    "mlm-distance-saves",
    "mt-bleu-en-de",
    "mt-bleu-en-fr",
    "clm-bits-enwik8",
    "clm-bits-text8",
}
#: Language pair of each data set in the printed tables; for documents, it does not matter.
PAIRS = {"IWSLT17 Fr-En": "fr-en", "WMT16 En-Ro": "en-ro", "TED": "ted-en-de", "News": "news-en-de"}
#: The workflow's model for each row of Table 3.
MODELS = {
    "Transformer block": "block",
    "Transformer-XL": "transformer-xl",
    "Transformer-XL + Top-k": "transformer-xl-top-k",
    "Adaptive span": "adaptive-span",
    "Adaptive span + Top-k": "adaptive-span-top-8",
}
SPANS = {"Adaptive span": "adaptive-span", "+Top-32": "adaptive-span-top-32", "+Top-8": "adaptive-span-top-8"}
#: Characters in the test texts, and the longest span.
CHARACTERS, LONGEST_SPAN = 5_000_000, 8192
#: Settings of the papers' models that premises need: adaptive spans start at zero.
CONFIGURATION = {"profile": "papers", "char_lm": {"models": {"adaptive-span": {"initial_span": 0.0}}}}


def ledger_of_papers(claims: pd.DataFrame, published: Path, folder: Path) -> pd.DataFrame:
    """Test each paper's claims on its own printed tables.

    Contradictions by another paper's tables are mentioned with a claim, but do not decide it.

    Parameters
    ----------
    claims : DataFrame
        ``config/published/claims.csv``.
    published : Path
        Folder of the printed tables.
    folder : Path
        Empty folder, into which the tables are written in the format of a run.
    """
    stated = claims.fillna({"unit": "", "premise": "", "budgets": ""})
    for paper in claims["paper"].unique():
        write(tables(published, paper), folder / paper)
    (folder / "nothing").mkdir()
    rows = []
    for claim in stated.to_dict("records"):
        circular = claim["id"] in CIRCULAR
        row = judge(claim, folder / ("nothing" if circular else claim["paper"]), printed=True)
        rows.append(row | ({"numbers": "would compare a printed number with itself"} if circular else {}))
    table = pd.DataFrame(rows)
    for claim, words in BETWEEN_PAPERS.items():
        table.loc[table["id"] == claim, "numbers"] += f"; contradicted by {words}"
    return table


def write(printed: dict[str, pd.DataFrame], folder: Path) -> None:
    """Write printed tables into a folder, where the workflow would have put them."""
    for name, table in printed.items():
        # Without the check of a run's tables: a paper does not print all of their numbers.
        with replacing(folder / name) as temporary:
            table.to_csv(temporary, index=False)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "config.yaml") as temporary:
        temporary.write_text(yaml.safe_dump(CONFIGURATION, sort_keys=False), encoding="utf-8")


def tables(published: Path, paper: str) -> dict[str, pd.DataFrame]:
    """Return a paper's printed tables by path in the results, or an empty dict if it prints no table that a claim needs."""
    if paper == "Extremely Sparse Transformer":
        return _forms(published) | _characters(published)
    if paper == "Explicit Sparse Transformer":
        return _translation(published)
    return {}


def _forms(published: Path) -> dict[str, pd.DataFrame]:
    tables = {}
    for number, unit in ((1, "sentences"), (2, "documents")):
        table = pd.read_csv(published / f"extremely_sparse_table{number}.csv").drop(columns="avg_printed")
        long = table.melt(["dataset", "method"], var_name="budget", value_name="bleu").dropna(subset="bleu")
        long["budget"] = pd.to_numeric(long["budget"].str.removeprefix("k"), errors="coerce")
        for dataset, rows in long.groupby("dataset"):
            of_form = rows.assign(form=rows["method"], tested_with=rows["method"], seed=0)
            path = f"forms/{unit}/{PAIRS[dataset]}/every_seed/measured.csv"
            tables[path] = of_form.drop(columns=["dataset", "method"]).reset_index(drop=True)
    return tables


def _translation(published: Path) -> dict[str, pd.DataFrame]:
    tables = {}
    for row in pd.read_csv(published / "explicit_sparse_translation.csv").itertuples():
        both = pd.DataFrame({"budget": [None, 8], "bleu": [row.full, row.top_8], "form": ["Full", "Top-k"]})
        tables[f"forms/sentences/{row.pair}/every_seed/measured.csv"] = both.assign(tested_with=both["form"], seed=0)
    return tables


def _characters(published: Path) -> dict[str, pd.DataFrame]:
    tables = {}
    printed = pd.read_csv(published / "extremely_sparse_table3.csv").set_index("model")
    for name, model in MODELS.items():
        for corpus in BITS:
            bits, positions = (printed.loc[name, f"{corpus}_{column}"] for column in ("bpc", "positions"))
            if pd.notna(bits):
                row = {"memory_length": LONGEST_SPAN, "characters": CHARACTERS, "bits_per_character": float(bits)}
                row["attended_positions"] = float(positions)
                tables[f"char_lm/{corpus}/models/{model}/seed0/measured.csv"] = pd.DataFrame([row])
    spans = pd.read_csv(published / "extremely_sparse_table4.csv").set_index("span_size_at_bpc")
    for name, model in SPANS.items():
        log = pd.DataFrame({"valid_bits": spans.columns.astype(float), "mean_span": spans.loc[name].to_numpy(float)})
        tables[f"char_lm/enwik8/models/{model}/seed0/log.csv"] = log
    return tables
