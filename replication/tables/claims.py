"""Tables of the papers' claims, from the ledgers of the runs in ``reported``.

Only findings of a paper, tested on real data, are counted. Identities check this implementation, and generated pictures are a
demonstration.
"""

import pandas as pd

from replication.claims.overview import MAIN, effect, needed, unmet
from replication.files.paths import ROOT
from replication.tables.markers import markdown

VERDICTS = ["holds", "fails", "undecided", "not comparable", "untested"]
DECIDED = VERDICTS[:3]
#: Names of the default profile's run, and of the papers' own tables.
DEMO, PAPERS = "demo", "papers"


def ledger(run: str) -> pd.DataFrame:
    """Return the ledger of a reported run, with each claim's ``measure``, ``unit``, ``relation`` and ``threshold``."""
    judged = pd.read_csv(ROOT / "reported" / run / "claims.csv", keep_default_na=False)
    published = pd.read_csv(ROOT / "config" / "published" / "claims.csv", keep_default_na=False)
    published = published.rename(columns={"effect": "measure"})
    return judged.merge(published[["id", "measure", "unit", "relation", "threshold"]], on="id", validate="one_to_one")


def runs() -> dict[str, pd.DataFrame]:
    """Return the ledger of every reported run, the papers' own numbers last."""
    names = [path.parent.name for path in (ROOT / "reported").glob("*/claims.csv")]
    return {name: ledger(name) for name in sorted(names, key=lambda name: (name == PAPERS, name))}


def evidence() -> dict[str, pd.DataFrame]:
    """Return each run's claims on real data, indexed by id; runs without any are left out."""
    real = {name: table[table["data"] == "real"].set_index("id") for name, table in runs().items() if name != PAPERS}
    return {name: table for name, table in real.items() if not table.empty}


def findings() -> dict[str, pd.DataFrame]:
    """Return the part of :func:`evidence` on the papers' findings; runs that test none are left out."""
    tables = {name: table[table["kind"] == "finding"] for name, table in evidence().items()}
    return {name: table for name, table in tables.items() if (table["verdict"] != "untested").any()}


def outcomes(kind: str = "finding") -> pd.Series:
    """Return the common outcome of each claim over all runs on real data, by id.

    ``holds``, ``fails`` or ``undecided`` if all runs with one of these verdicts agree, ``holds or undecided`` or ``fails or
    undecided`` if some are undecided, ``differs`` if it holds in some and fails in others, and ``no verdict`` if there is none.
    """
    everything = pd.concat(evidence().values())
    judged = everything[everything["verdict"].isin(DECIDED)]
    common = judged.groupby(level=0)["verdict"].agg(_together)
    claims = ledger(DEMO)
    return common.reindex(claims.loc[claims["kind"] == kind, "id"]).fillna("no verdict")


def _together(verdicts: pd.Series) -> str:
    """Return the common outcome of some verdicts."""
    given = [verdict for verdict in DECIDED if (verdicts == verdict).any()]
    return "differs" if {"holds", "fails"} <= set(given) else " or ".join(given)


#: Wording of each outcome of :func:`outcomes`.
WORDING = {
    "holds": "hold in every run that tests them",
    "holds or undecided": "hold in some and are undecided in the others",
    "fails": "fail in every run that tests them",
    "fails or undecided": "fail in some and are undecided in the others",
    "differs": "hold in some and fail in others",
    "undecided": "are undecided",
    "no verdict": "have no verdict",
}


def verdicts() -> str:
    """Return a sentence with the number of claims per outcome, counting each claim once over all runs."""
    known = outcomes()
    counts = ", ".join(f"{(known == outcome).sum()} {words}" for outcome, words in WORDING.items())
    ours, identities = outcomes("ours"), outcomes("identity")
    return (
        f"**{len(known)} findings of the papers, tested on real data in {len(findings())} runs:** {counts}."
        f" Not counted: {len(ours)} claims of this repository, {len(identities)} identities that check the implementation, and"
        " everything measured on generated pictures, which is a demonstration."
    )


def main() -> str:
    """Return the main claims on real data: the common outcome, and each run's verdict and effect."""
    known, together = evidence(), outcomes()
    statements = ledger(DEMO).set_index("id")
    rows = []
    for claim in MAIN:
        judged = {name: table.loc[claim] for name, table in known.items() if claim in table.index}
        # Runs that decide the claim, and runs that measured something for it.
        decided = [name for name, row in judged.items() if row["verdict"] in DECIDED]
        near = [name for name, row in judged.items() if row["numbers"] != "not measured here"]
        # If no run decides the claim, show the run that lacks least.
        chosen = decided or sorted(near, key=lambda name: len(judged[name]["change"]))[:1]
        shown = "; ".join(f"{verdict(judged[name])} ([{name}]({name}))" for name in chosen)
        rows.append([statements.loc[claim, "statement"], together[claim], shown, needed(statements.loc[claim])])
    return markdown(
        ["claim", "together", "on real text: verdict, effect (95 % interval)", "the effect has to be"], rows
    )


#: Main claims that the README shows, each with one run that decides it.
FIVE = {
    "mlm-recall-distance-first": "demo",
    "mlm-perplexity-distance-first": "brown-512",
    "blocks-two-beat-22-of-bigbird": "brown-512",
    "mt-bleu-on-par-at-gold-sparsity": "darby",
    "xst-top-k-leads": "multi30k-forms",
}


def five() -> str:
    """Return five main claims with one run's verdict each, and the common outcome of all runs."""
    known, together = evidence(), outcomes()
    rows = []
    for claim, name in FIVE.items():
        row = known[name].loc[claim]
        rows.append([row["statement"], f"{verdict(row)} ([{name}](reported/{name}))", needed(row), together[claim]])
    return markdown(["claim", "one run: verdict, effect (95 % interval)", "it has to be", "together"], rows)


def counts() -> str:
    """Return the number of findings per verdict, for each run on real data and the papers' own tables."""
    rows = []
    papers = runs()[PAPERS]
    for name, table in [*findings().items(), (PAPERS, papers[papers["kind"] == "finding"])]:
        number = table["verdict"].value_counts()
        what = "the papers' own tables" if name == PAPERS else name
        rows.append([f"[{what}]({name})", *(str(number.get(verdict, 0)) for verdict in VERDICTS[:-1])])
    return markdown(["run", *VERDICTS[:-1]], rows)


def demonstration() -> str:
    """Return the default profile's verdicts on generated pictures."""
    rows = []
    for _, row in ledger(DEMO).iterrows():
        if row["data"] == "generated" and row["verdict"] != "untested":
            rows.append([row["statement"], verdict(row), needed(row), over(row)])
    return markdown(["claim", "verdict, effect (95 % interval)", "the effect has to be", "over"], rows)


def decided(of: tuple[str, ...], prefixes: tuple[str, ...]) -> str:
    """Return the claims that one of these runs decides, with a column per run and the criterion."""
    shown = {name: table.set_index("id") for name, table in runs().items() if name in of}
    rows = []
    for claim in shown[of[0]].itertuples():
        cells = {name: shown[name].loc[claim.Index] for name in of}
        if claim.Index.startswith(prefixes) and any(row["verdict"] in DECIDED for row in cells.values()):
            rows.append([claim.statement, *(verdict(row) for row in cells.values()), needed(cells[of[0]])])
    return markdown(["claim", *(f"{name}: effect (95 % interval)" for name in of), "the effect has to be"], rows)


def judged(run: str, prefixes: tuple[str, ...]) -> str:
    """Return every claim that a run measured on real data: verdict, effect with its interval, and what would change it.

    Claims without a verdict, because a premise or a measurement is missing, are folded below the others.
    """
    table = ledger(run)
    measured = (table["numbers"] != "not measured here") & (table["data"] != "generated")
    rows = table[measured & table["id"].str.startswith(prefixes)]
    with_verdict = rows["verdict"].isin(DECIDED)
    parts = [_judged(part) for part in (rows[with_verdict], rows[~with_verdict]) if len(part)]
    if len(parts) < 2:
        return parts[0]
    summary = f"{(~with_verdict).sum()} more without a verdict: a premise or a measurement is missing"
    return f"{parts[0]}\n\n<details>\n<summary>{summary}</summary>\n\n{parts[1]}\n\n</details>"


def _judged(claims: pd.DataFrame) -> str:
    rows = []
    for _, row in claims.iterrows():
        change = "" if row["verdict"] == "untested" else row["change"]
        rows.append([row["statement"], verdict(row), f"{row['measure']}: {needed(row)}", over(row), change])
    return markdown(
        ["claim", "verdict, effect (95 % interval)", "the effect has to be", "over", "what would change it"], rows
    )


def over(row: pd.Series) -> str:
    """Return the compared sparsities, and what the interval varies over."""
    return "; ".join(filter(None, [row["where"], row["n"]]))


def verdict(row: pd.Series) -> str:
    """Return a ledger row's verdict and effect, with its interval, the unmet premises, or the missing comparison."""
    if row["verdict"] == "untested":
        # The missing comparisons come first in `numbers`.
        return f"untested: {row['numbers'].split('; settings')[0].split('; ')[0]}".removesuffix(": ")
    if row["verdict"] == "not comparable":
        return f"not comparable, {effect(row)}: {'; '.join(unmet(row['premise']))}"
    return f"**{row['verdict']}**, {effect(row)}"


def masked_lm() -> str:
    """Return the claims decided on Brown, by two models at the papers' sequence length and one at a quarter of it."""
    return decided(("brown-512", "brown-512-seed1", "brown"), ("sparse-consistency", "mlm-", "blocks-"))


def translation() -> str:
    """Return the claims decided on Darby's verses and on Multi30k's short sentences."""
    return decided(("darby", "darby-near-gold", "darby-en-de", "multi30k"), ("mt-",))


def forms() -> str:
    """Return the claims decided by attention forms on Multi30k and Darby, and by normalisers on Multi30k."""
    return decided(("multi30k-forms", "darby-forms", "multi30k-speed"), ("est-", "xst-"))


def documents() -> str:
    """Return the claims decided on Darby's chapters."""
    return decided(("darby-documents",), ("xst-documents-",))


def characters() -> str:
    """Return the claims decided on War and Peace."""
    return decided(("war-and-peace-512", "war-and-peace-spans"), ("clm-",))
