"""Tables of the papers' claims, from the ledgers of the runs in ``reported``.

Only findings of a paper, tested on real data, are counted. Identities check this implementation, and generated pictures are a
demonstration.
"""

import re

import pandas as pd

from replication.claims.finding import DEPENDS, FAILS, HOLDS, SETTLED, UNDECIDED, UNTESTED
from replication.claims.overview import effect, in_abstracts, needed, unmet
from replication.claims.runs import PAPERS, known
from replication.claims.stability import STABLE, counted
from replication.files.paths import ROOT
from replication.tables.markers import markdown
from replication.tables.regimes import REGIMES, configuration, regime

#: Verdicts of runs that decide a claim.
DECIDED = [*SETTLED, UNDECIDED]
VERDICTS = [*DECIDED, "not comparable", UNTESTED]
#: Name of the default profile's run.
DEMO = "demo"


def published() -> pd.DataFrame:
    """Return ``config/published/claims.csv``."""
    return pd.read_csv(ROOT / "config" / "published" / "claims.csv", keep_default_na=False)


def ledger(run: str) -> pd.DataFrame:
    """Return the ledger of a reported run, with each claim's ``measure``, ``unit``, ``relation`` and ``threshold``.

    Claims that the stored ledger judged by another rule are untested. ``counts_as`` is the verdict that counts.
    """
    claims = published()
    judged = pd.read_csv(ROOT / "reported" / run / "claims.csv", keep_default_na=False)
    table = known(claims, judged)
    table["counts_as"] = [counted(row.verdict, row.stability) for row in table.itertuples()]
    claims = claims.rename(columns={"effect": "measure"})
    return table.merge(claims[["id", "measure", "unit", "relation", "threshold"]], on="id", validate="one_to_one")


def runs() -> dict[str, pd.DataFrame]:
    """Return the ledger of every reported run, the papers' own numbers last."""
    names = [path.parent.name for path in (ROOT / "reported").glob("*/claims.csv")]
    return {name: ledger(name) for name in sorted(names, key=lambda name: (name == PAPERS, name))}


def evidence() -> dict[str, pd.DataFrame]:
    """Return each run's claims on real data, indexed by id, with their ``regime``; runs without any are left out."""
    real = {}
    for name, table in runs().items():
        shown = table[table["data"] == "real"].set_index("id")
        if name != PAPERS and not shown.empty:
            settings = configuration(name)
            real[name] = shown.assign(regime=[regime(claim, settings) for claim in shown.index])
    return real


def findings() -> dict[str, pd.DataFrame]:
    """Return the part of :func:`evidence` on the papers' findings; runs that test none are left out."""
    tables = {name: table[table["kind"] == "finding"] for name, table in evidence().items()}
    return {name: table for name, table in tables.items() if (table["verdict"] != UNTESTED).any()}


def outcomes(kind: str = "finding") -> pd.DataFrame:
    """Return the common outcome of each claim over all runs on real data of a regime: a row per claim, a column per regime.

    Unstable verdicts count as undecided. If all runs of a regime with a verdict agree, it is the outcome. Else it is ``holds or
    undecided``, ``fails or undecided`` or ``depends on the budget or undecided`` if the others are undecided, and ``differs``
    if they are not. A claim that no run of a regime decides has an empty outcome there.
    """
    claims = published()
    rows = [table[table["counts_as"].isin(DECIDED)] for table in evidence().values()]
    judged = pd.concat([table.reset_index()[["id", "regime", "counts_as"]] for table in rows]) if rows else None
    index = pd.Index(claims.loc[claims["kind"] == kind, "id"])
    if judged is None or judged.empty:
        return pd.DataFrame("", index, list(REGIMES))
    common = judged.groupby(["id", "regime"])["counts_as"].agg(_together).unstack()
    return common.reindex(index=index, columns=list(REGIMES)).astype(object).fillna("")


def _together(verdicts: pd.Series) -> str:
    """Return the common outcome of some verdicts."""
    given = [verdict for verdict in DECIDED if (verdicts == verdict).any()]
    return "differs" if len(set(given) - {UNDECIDED}) > 1 else " or ".join(given)


#: Outcomes of :func:`outcomes`, in the order of tables.
OUTCOMES = (
    HOLDS, f"{HOLDS} or {UNDECIDED}", FAILS, f"{FAILS} or {UNDECIDED}", DEPENDS, f"{DEPENDS} or {UNDECIDED}", "differs",
    UNDECIDED,
)  # fmt: skip


def verdicts() -> str:
    """Return the number of findings per regime and outcome, and how many of the settled verdicts are stable."""
    known_outcomes = outcomes()
    shown = [name for name in REGIMES if known_outcomes[name].any()]
    used = [outcome for outcome in OUTCOMES if (known_outcomes == outcome).any(axis=None)]
    rows = [[name, *(str((known_outcomes[name] == outcome).sum()) for outcome in used)] for name in shown]
    without = (known_outcomes == "").all(axis=1).sum()
    ours, identities = ((published()["kind"] == kind).sum() for kind in ("ours", "identity"))
    text = (
        f"**{len(known_outcomes)} findings of the papers, tested on real data in {len(findings())} runs;** {without} of them"
        f" have no verdict in any regime. {stable()} Not counted: {ours} claims of this repository, {identities} identities"
        " that check the implementation, and everything measured on generated pictures, which is a demonstration."
    )
    return f"{text}\n\n{markdown(['regime', *used], rows)}"


def at_a_glance() -> str:
    """Return a sentence with the number of findings that hold, fail or differ, where some run decides them."""
    common = outcomes()
    known_outcomes = pd.Series([outcome for outcome in common.to_numpy().flat if outcome])
    decided = (common != "").any(axis=1).sum()
    holds, fails = ((known_outcomes == verdict).sum() for verdict in (HOLDS, FAILS))
    return (
        f"**{decided} of {len(common)} findings of the papers have a verdict on real text, {len(known_outcomes)} by regime:"
        f" {holds} hold, {fails} fail, {len(known_outcomes) - holds - fails} are undecided or mixed"
        " ([each with its interval](reported/README.md)).**"
    )


def stable() -> str:
    """Return a sentence with the number of verdicts on findings that other choices could change, and of the stable ones."""
    tried = pd.concat([table[table["stability"] != ""] for table in findings().values()])
    is_stable, is_curve = tried["stability"] == STABLE, tried["budgets"] != ""
    curves, numbers = is_stable[is_curve], is_stable[~is_curve]
    return (
        f"Of {len(tried)} settled verdicts, {is_stable.sum()} are stable, and the others count as undecided. The"
        f" {len(numbers)} about single numbers were computed again without each seed or model ({numbers.sum()} stay), the"
        f" {len(curves)} about curves also with half of the settings and with the Pareto set ({curves.sum()} stay)."
    )


def main() -> str:
    """Return the claims of the papers' abstracts on real data: each regime's outcome, and each run's verdict and effect."""
    real, common = evidence(), outcomes()
    claims = published()
    rows = []
    for claim in in_abstracts(claims).itertuples():
        judged = {name: table.loc[claim.id] for name, table in real.items() if claim.id in table.index}
        # Runs that decide the claim, and runs that measured something for it.
        chosen = [name for name, row in judged.items() if row["verdict"] in DECIDED]
        near = [name for name, row in judged.items() if row["numbers"] != "not measured here"]
        # If no run decides the claim, show the run that lacks least.
        chosen = chosen or sorted(near, key=lambda name: len(judged[name]["change"]))[:1]
        shown = "; ".join(f"{verdict(judged[name])} ([{name}]({name}))" for name in chosen)
        statement = claims.set_index("id").loc[claim.id]
        rows.append([claim.statement, _by_regime(common.loc[claim.id]), shown or "not measured", needed(statement)])
    return markdown(
        ["claim", "outcome by regime", "on real text: verdict, effect (95 % interval)", "the effect has to be"], rows
    )


def _by_regime(common: pd.Series) -> str:
    return "; ".join(f"{name}: {outcome}" for name, outcome in common.items() if outcome) or "no verdict"


def abstracts() -> str:
    """Return the claims of the papers' abstracts, in their order, with the outcome over all runs of each regime."""
    common = outcomes()
    claims = in_abstracts(published())
    rows = [[row["paper"], row["statement"], _by_regime(common.loc[row["id"]])] for _, row in claims.iterrows()]
    return markdown(["paper", "claim of its abstract", "outcome over all runs, by regime"], rows)


def lost_at_gold() -> str:
    """Return a sentence with the BLEU that distance and k-means lose with the gold graph's share of the pairs, in all runs."""
    claim, lost, names = "mt-bleu-on-par-at-gold-sparsity", [], []
    for name, table in evidence().items():
        row = table.loc[claim] if claim in table.index else None
        if row is not None and row["verdict"] in DECIDED:
            lost += [float(row["effect"]), *map(float, re.findall(r"BLEU lost at [^:]*: (-?[0-9.]+)", row["numbers"]))]
            names.append(name)
    return (
        f"With the gold graph's share of the pairs, distance and k-means lose {min(lost):.1f} to {max(lost):.1f} BLEU against"
        f" the full model, in {len(lost)} comparisons of {', '.join(names)}."
    )


def counts() -> str:
    """Return the number of findings per verdict, for each run on real data and the papers' own tables."""
    rows = []
    papers = runs()[PAPERS]
    for name, table in [*findings().items(), (PAPERS, papers[papers["kind"] == "finding"])]:
        number = table["counts_as"].value_counts()
        what = "the papers' own tables" if name == PAPERS else name
        rows.append([f"[{what}]({name})", *(str(number.get(verdict, 0)) for verdict in VERDICTS[:-1])])
    return markdown(["run", *VERDICTS[:-1]], rows)


def demonstration() -> str:
    """Return the default profile's verdicts on generated pictures."""
    rows = []
    for _, row in ledger(DEMO).iterrows():
        if row["data"] == "generated" and row["verdict"] != UNTESTED:
            rows.append([row["statement"], verdict(row), needed(row), over(row)])
    return markdown(["claim", "verdict, effect (95 % interval)", "the effect has to be", "over"], rows)


def judged(run: str) -> str:
    """Return every claim that a run measured on real data: verdict, effect with its interval, and what would change it.

    Claims without a verdict, because a premise or a measurement is missing, are folded below the others.
    """
    table = ledger(run)
    measured = (table["numbers"] != "not measured here") & (table["data"] != "generated")
    rows = table[measured]
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
    """Return the compared budget, and what the interval varies over."""
    return "; ".join(filter(None, [row["where"], row["n"]]))


def verdict(row: pd.Series) -> str:
    """Return a ledger row's verdict and effect, with its interval, the unmet premises, or the missing comparison."""
    if row["verdict"] == "untested":
        # The verdicts at the budgets come first in `numbers`, or else the missing comparisons.
        parts = row["numbers"].split("; ")
        at_budgets = [part for part in parts if re.fullmatch(r"at [0-9.]+ (x gold|%): [a-z ]+", part)]
        return f"untested: {', '.join(at_budgets) or parts[0]}".removesuffix(": ")
    if row["verdict"] == "not comparable":
        return f"not comparable, {effect(row)}: {'; '.join(unmet(row['premise']))}"
    stability = row.get("stability", "")
    return f"**{row['verdict']}**, {effect(row)}" + (f", {stability}" if stability not in ("", STABLE) else "")
