"""Tables of what the runs in ``reported`` say of the papers' claims, from their ledgers.

Only claims that are findings of a paper count, and only on real data: identities check this implementation, and generated text
or pictures are a demonstration.
"""

import pandas as pd

from replication.claims.overview import effect, needed, unmet
from replication.files.paths import ROOT
from replication.tables.markers import markdown

VERDICTS = ["holds", "fails", "undecided", "not comparable", "untested"]
DECIDED = VERDICTS[:3]
#: The run of the default profile, and the papers' own tables.
DEMO, PAPERS = "demo", "papers"


def ledger(run: str) -> pd.DataFrame:
    """Return the ledger of a reported run, with each claim's ``measure``, ``unit``, ``relation`` and ``threshold``."""
    found = pd.read_csv(ROOT / "reported" / run / "claims.csv", keep_default_na=False)
    published = pd.read_csv(ROOT / "config" / "published" / "claims.csv", keep_default_na=False)
    published = published.rename(columns={"effect": "measure"})
    return found.merge(published[["id", "measure", "unit", "relation", "threshold"]], on="id", validate="one_to_one")


def runs() -> dict[str, pd.DataFrame]:
    """Return the ledger of every reported run, the papers' own numbers last."""
    names = [path.parent.name for path in (ROOT / "reported").glob("*/claims.csv")]
    return {name: ledger(name) for name in sorted(names, key=lambda name: (name == PAPERS, name))}


def evidence() -> dict[str, pd.DataFrame]:
    """Return of every run the claims that it tests on real data, by id; runs without any are left out."""
    found = {name: table[table["data"] == "real"].set_index("id") for name, table in runs().items() if name != PAPERS}
    return {name: table for name, table in found.items() if not table.empty}


def findings() -> dict[str, pd.DataFrame]:
    """Return :func:`evidence` on findings of the papers; runs that say something of none are left out."""
    found = {name: table[table["kind"] == "finding"] for name, table in evidence().items()}
    return {name: table for name, table in found.items() if (table["verdict"] != "untested").any()}


def outcomes(kind: str = "finding") -> pd.Series:
    """Return what the runs on real data say of each claim together, by id.

    ``holds`` or ``fails`` if every run that tests it says so, ``differs`` if they do not agree, ``undecided`` if all are, or
    ``no verdict``.
    """
    everything = pd.concat(evidence().values())
    judged = everything[everything["verdict"].isin(DECIDED)]
    said = judged.groupby(level=0)["verdict"].agg(lambda found: found.iloc[0] if found.nunique() == 1 else "differs")
    claims = ledger(DEMO)
    return said.reindex(claims.loc[claims["kind"] == kind, "id"]).fillna("no verdict")


#: What :func:`outcomes` says, in words.
SAID = {
    "holds": "hold in every run that tests them",
    "fails": "fail in every run that tests them",
    "differs": "differ between runs",
    "undecided": "are undecided",
    "no verdict": "have no verdict",
}


def verdicts() -> str:
    """Count claims, not claims times runs."""
    found = outcomes()
    counts = ", ".join(f"{(found == outcome).sum()} {words}" for outcome, words in SAID.items())
    own, identities = outcomes("ours"), outcomes("identity")
    return (
        f"**{len(found)} findings of the papers, tested on real data in {len(findings())} runs:** {counts}."
        f" Not counted: {len(own)} claims of this repository, {len(identities)} identities that check the implementation, and"
        " everything measured on generated text or pictures, which is a demonstration."
    )


#: The claims of the papers that a reader asks for first.
MAIN = (
    "mlm-recall-distance-first",
    "mlm-recall-kmeans-second",
    "mlm-perplexity-distance-first",
    "blocks-two-beat-22-of-bigbird",
    "blocks-faster-than-full-entmax",
    "mt-recall-sparsefinder-dominates",
    "mt-bleu-on-par-at-gold-sparsity",
    "est-top-8-beats-full",
    "xst-top-k-leads",
    "clm-span-top-8-no-worse",
)


def main() -> str:
    """Return the main claims on real data: what all runs say together, and verdict and effect in each."""
    known, together = evidence(), outcomes()
    statements = ledger(DEMO).set_index("id")
    rows = []
    for claim in MAIN:
        judged = {name: table.loc[claim] for name, table in known.items() if claim in table.index}
        # Where it is decided, or else where something can be said of it.
        decided = [name for name, row in judged.items() if row["verdict"] in DECIDED]
        near = [name for name, row in judged.items() if row["numbers"] != "not measured here"]
        # Of runs that do not decide it, the one that lacks least.
        told = decided or sorted(near, key=lambda name: len(judged[name]["change"]))[:1]
        shown = "; ".join(f"{verdict(judged[name])} ([{name}](reported/{name}))" for name in told)
        rows.append([statements.loc[claim, "statement"], together[claim], shown, needed(statements.loc[claim])])
    return markdown(
        ["claim", "together", "on real text: verdict, effect (95 % interval)", "the effect has to be"], rows
    )


def counts() -> str:
    """Return how many findings each run on real data gives which verdict, and the papers' own tables."""
    rows = []
    papers = runs()[PAPERS]
    for name, table in [*findings().items(), (PAPERS, papers[papers["kind"] == "finding"])]:
        number = table["verdict"].value_counts()
        what = "the papers' own tables" if name == PAPERS else name
        rows.append([f"[{what}]({name})", *(str(number.get(verdict, 0)) for verdict in VERDICTS[:-1])])
    return markdown(["run", *VERDICTS[:-1]], rows)


def demonstration() -> str:
    """Return what the default profile says on generated text and pictures."""
    rows = []
    for _, row in ledger(DEMO).iterrows():
        if row["data"] == "generated" and row["verdict"] != "untested":
            rows.append([row["statement"], verdict(row), needed(row), over(row)])
    return markdown(["claim", "verdict, effect (95 % interval)", "the effect has to be", "over"], rows)


def decided(of: tuple[str, ...], prefixes: tuple[str, ...]) -> str:
    """Return claims that one of these runs decides: a column each, and what the effect has to be."""
    shown = {name: table.set_index("id") for name, table in runs().items() if name in of}
    rows = []
    for claim in shown[of[0]].itertuples():
        cells = {name: shown[name].loc[claim.Index] for name in of}
        if claim.Index.startswith(prefixes) and any(row["verdict"] in DECIDED for row in cells.values()):
            rows.append([claim.statement, *(verdict(row) for row in cells.values()), needed(cells[of[0]])])
    return markdown(["claim", *(f"{name}: effect (95 % interval)" for name in of), "the effect has to be"], rows)


def judged(run: str, prefixes: tuple[str, ...]) -> str:
    """Return every claim that a run says something of: verdict, effect with its interval, and what would change it."""
    rows = []
    for _, row in ledger(run).iterrows():
        if row["id"].startswith(prefixes) and row["numbers"] != "not measured here":
            change = "" if row["verdict"] == "untested" else row["change"]
            rows.append([row["statement"], verdict(row), f"{row['measure']}: {needed(row)}", over(row), change])
    return markdown(
        ["claim", "verdict, effect (95 % interval)", "the effect has to be", "over", "what would change it"], rows
    )


def over(row: pd.Series) -> str:
    """Return the sparsities compared and what the interval varies over."""
    return "; ".join(filter(None, [row["where"], row["n"]]))


def verdict(row: pd.Series) -> str:
    """Return the verdict and effect of a ledger's row, with the interval; premises not met, or what is missing."""
    if row["verdict"] == "untested":
        # What is missing stands first.
        return f"untested: {row['numbers'].split('; settings')[0].split('; ')[0]}".removesuffix(": ")
    if row["verdict"] == "not comparable":
        return f"not comparable, {effect(row)}: {'; '.join(unmet(row['premise']))}"
    return f"**{row['verdict']}**, {effect(row)}"


def masked_lm() -> str:
    """Return what Brown decides: at the papers' length, twice, and at a quarter of it."""
    return decided(("brown-512", "brown-512-seed1", "brown"), ("sparse-consistency", "mlm-", "blocks-"))


def translation() -> str:
    """Return what Darby's verses and Multi30k's short sentences decide."""
    return decided(("darby", "darby-en-de", "multi30k"), ("mt-",))


def forms() -> str:
    """Return what attention forms on Multi30k and Darby's verses decide, and normalisers on Multi30k."""
    return decided(("multi30k-forms", "darby-forms", "multi30k-speed"), ("est-", "xst-"))


def characters() -> str:
    """Return what War and Peace decides."""
    return decided(("war-and-peace-512",), ("clm-",))
