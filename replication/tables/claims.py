"""What the runs in ``reported`` say of the papers' claims, from their ledgers."""

import pandas as pd

from replication.claims.overview import effect, needed, unmet
from replication.paths import ROOT
from replication.tables.markers import markdown

VERDICTS = ["holds", "fails", "undecided", "not comparable", "untested"]
DECIDED = VERDICTS[:3]
DEMO = "demo"


def ledger(run: str) -> pd.DataFrame:
    """The ledger of a reported run, with the ``measure``, ``unit``, ``relation`` and ``threshold`` of every claim."""
    found = pd.read_csv(ROOT / "reported" / run / "claims.csv", keep_default_na=False)
    published = pd.read_csv(ROOT / "config" / "published" / "claims.csv", keep_default_na=False)
    published = published.rename(columns={"effect": "measure"})
    return found.merge(published[["id", "measure", "unit", "relation", "threshold"]], on="id", validate="one_to_one")


def runs() -> dict[str, pd.DataFrame]:
    """The ledger of every reported run, the papers' own numbers last; one by rules without a criterion is left out."""
    names = [path.parent.name for path in (ROOT / "reported").glob("*/claims.csv")]
    found = {name: ledger(name) for name in sorted(names, key=lambda name: (name == "papers", name))}
    return {name: table for name, table in found.items() if "criterion" in table}


#: The claims of the papers that a reader asks for first.
MAIN = (
    "mlm-recall-distance-first",
    "mlm-recall-kmeans-second",
    "mlm-perplexity-distance-first",
    "blocks-two-beat-22-of-bigbird",
    "blocks-two-beat-22-of-bigbird-with-entmax",
    "blocks-faster-than-full-entmax",
    "mt-bleu-on-par-at-gold-sparsity",
    "est-top-8-beats-full",
    "xst-top-k-leads",
    "clm-span-top-8-no-worse",
)


def verdicts() -> str:
    """How many claims have a verdict, and how many verdicts there are of each kind on real text and on the embedded corpus."""
    ledgers = runs()
    real = {name: table for name, table in ledgers.items() if name not in (DEMO, "papers")}
    everywhere = pd.concat([*real.values(), ledgers[DEMO]])
    decided = everywhere[everywhere["verdict"].isin(DECIDED)]["id"].nunique()
    told = {
        f"On real text, counted in each of {len(real)} runs": pd.concat(real),
        "On the embedded corpus, which `make results` runs": ledgers[DEMO],
    }
    lines = []
    for where, table in told.items():
        number = table[table["verdict"].isin(DECIDED)]["verdict"].value_counts()
        lines.append(f"{where}, {', '.join(f'{number.get(verdict, 0)} {said}' for verdict, said in SAID.items())}.")
    return (
        f"**{len(ledgers[DEMO])} claims, of which {decided} have a verdict in some run.** {' '.join(lines)}"
        " The rest is not comparable, or not measured there."
    )


#: Verdicts of several claims.
SAID = {"holds": "hold", "fails": "fail", "undecided": "are undecided"}


def main() -> str:
    """The main claims, on real text and on the embedded corpus: verdict and effect."""
    ledgers = {name: table.set_index("id") for name, table in runs().items() if name != "papers"}
    demo = ledgers.pop(DEMO)
    rows = []
    for claim in MAIN:
        judged = {name: table.loc[claim] for name, table in ledgers.items() if claim in table.index}
        # Where it is decided, or else where something can be said of it.
        told = [name for name, row in judged.items() if row["verdict"] in DECIDED] or [
            name for name, row in judged.items() if row["verdict"] != "untested"
        ][:1]
        shown = "; ".join(f"{verdict(judged[name])} ([{name}](reported/{name}))" for name in told)
        rows.append([demo.loc[claim, "statement"], shown, verdict(demo.loc[claim]), needed(demo.loc[claim])])
    return markdown(["claim", "on real text", "on the embedded corpus", "the effect has to be"], rows)


def counts() -> str:
    """How many claims of each run have which verdict."""
    rows = []
    for name, table in runs().items():
        number = table["verdict"].value_counts()
        what = "the papers' own tables" if name == "papers" else name
        rows.append([f"[{what}]({name})", *(str(number.get(verdict, 0)) for verdict in VERDICTS)])
    return markdown(["run", *DECIDED, "not comparable", "not measured there"], rows)


def decided(of: tuple[str, ...], prefixes: tuple[str, ...]) -> str:
    """Claims that one of these runs, or the demo's stored one, decides: a column each, and what the effect has to be."""
    ledgers = runs()
    shown = {name: ledgers[name].set_index("id") for name in (*of, DEMO) if name in ledgers}
    rows = []
    for claim in shown[of[0]].itertuples():
        cells = {name: table.loc[claim.Index] for name, table in shown.items()}
        if claim.Index.startswith(prefixes) and any(row["verdict"] in DECIDED for row in cells.values()):
            rows.append([claim.statement, *(verdict(row) for row in cells.values()), needed(cells[of[0]])])
    return markdown(["claim", *(f"{name}: effect (95 % interval)" for name in shown), "the effect has to be"], rows)


def judged(run: str, prefixes: tuple[str, ...]) -> str:
    """Every claim of which a run says something: verdict, effect with its interval, and why others are left open."""
    rows = []
    for _, row in ledger(run).iterrows():
        if row["id"].startswith(prefixes) and row["numbers"] != "not measured here":
            rows.append([row["statement"], verdict(row), f"{row['measure']}: {needed(row)}", row["n"]])
    return markdown(["claim", "verdict, effect (95 % interval)", "the effect has to be", "over"], rows)


def verdict(row: pd.Series) -> str:
    """Verdict and effect of a line of a ledger, with the interval; the premises not met, or what is missing."""
    if row["verdict"] == "untested":
        return f"untested: {row['numbers']}".removesuffix(": ")
    if row["verdict"] == "not comparable":
        return f"not comparable, {effect(row)}: {'; '.join(unmet(row['premise']))}"
    return f"**{row['verdict']}**, {effect(row)}"


def masked_lm() -> str:
    """What Brown decides, at the papers' length, twice, and at a quarter of it."""
    return decided(("brown-512", "brown-512-seed1", "brown"), ("sparse-consistency", "mlm-", "blocks-"))


def translation() -> str:
    """What Darby's verses and Multi30k's short sentences decide."""
    return decided(("darby", "darby-en-de", "multi30k"), ("mt-",))


def forms() -> str:
    """What the attention forms on Multi30k and Darby's verses decide, and the normalisers on Multi30k."""
    return decided(("multi30k-forms", "darby-forms", "multi30k-speed"), ("est-", "xst-"))


def characters() -> str:
    """What War and Peace decides."""
    return decided(("war-and-peace-512",), ("clm-",))
