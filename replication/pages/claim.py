"""Pages of single claims, in Markdown, each with its rows as a CSV file."""

import inspect
import re
import textwrap
from fnmatch import fnmatch
from pathlib import Path

import pandas as pd

from replication.claims.finding import UNTESTED
from replication.claims.overview import SIGNS, demonstrates, effect, needed, unmet
from replication.files.paths import ROOT
from replication.files.storage import replacing
from replication.pages.comparisons import comparisons
from replication.pages.drawn import strip
from replication.pages.judged import PRINTED, Claim, judged_claims
from replication.pages.rules import arguments_of, changes_of, functions_of, place_of
from replication.tables.claims import over
from replication.tables.markers import markdown

#: Page with the modules whose code the site shows.
REFERENCE = ROOT / "docs" / "reference" / "claims.md"
#: Columns of the CSV file of a claim.
COLUMNS = (
    "id", "run", "regime", "verdict", "stability", "counts_as", "comparison", "effect", "low", "high", "unit", "relation",
    "threshold", "alone", "decides", "where", "n", "data", "premise", "change", "inputs",
)  # fmt: skip
PREMISES = ROOT / "config" / "published" / "premises.csv"
PICTURE = (
    "*Each line is a run, in the order of the regimes. The vertical line is the threshold, values to its right support the"
    " claim, and hollow markers change with a choice of ours. Point at a marker for its numbers.*"
)


def write_claims(folder: Path) -> list[str]:
    """Write a page and a CSV file for each claim into a folder, and remove other files there.

    Parameters
    ----------
    folder : Path
        Folder two levels below the root, such as ``docs/claims``, to which links are relative.

    Returns
    -------
    list of str
        Ids of the claims.
    """
    folder.mkdir(exist_ok=True)
    claims, written = judged_claims(), set()
    for claim in claims:
        for name, text in ((f"{claim.id}.md", page(claim)), (f"{claim.id}.csv", raw_rows(claim).to_csv(index=False))):
            path = folder / name
            written.add(path)
            # Sphinx reads pages again whose files have changed.
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                with replacing(path) as temporary:
                    temporary.write_text(text, encoding="utf-8")
    for path in {*folder.iterdir()} - written:
        path.unlink()
    return [claim.id for claim in claims]


def raw_rows(claim: Claim) -> pd.DataFrame:
    """Return a row for each comparison of each run, with all columns of the run's ledger that concern it."""
    rows = []
    for row in claim.rows:
        found, notes = comparisons(row)
        shared = {name: row[name] for name in ("id", "run", "regime", "verdict", "stability", "counts_as")}
        rest = {name: row[name] for name in ("where", "n", "data", "premise", "change", "inputs")}
        for compared in found:
            low, high = compared.interval or ("", "")
            own = {"comparison": compared.what, "effect": compared.effect, "low": low, "high": high}
            own |= {"unit": row["unit"], "relation": row["relation"], "threshold": row["threshold"]}
            rows.append(shared | own | {"alone": compared.verdict, "decides": compared.decides} | rest)
        rows += [shared | {"comparison": note} | rest for note in notes]
    return pd.DataFrame(rows, columns=COLUMNS)


def page(claim: Claim) -> str:
    """Return the page of a claim in MyST Markdown."""
    stated = claim.stated
    parts = [
        "---\norphan: true\n---",
        f"# {claim.number}. {stated['statement']}",
        f"{stated['paper']}{', section ' + stated['section'] if stated['section'] else ''}; {_kind(claim)}. Id: `{claim.id}`.",
        _outcomes(claim),
        _verdicts(claim),
        _rule(claim),
        _runs(claim),
        _code(claim),
        _changes(claim),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _kind(claim: Claim) -> str:
    return {
        "finding": "a finding of the paper",
        "identity": "an identity, which checks this implementation",
        "ours": "a claim of this repository",
    }[claim.stated["kind"]]


def _outcomes(claim: Claim) -> str:
    """Return the common outcome of the runs of each regime."""
    if not claim.outcomes:
        return "**No run on real data decides this claim.**"
    given = "; ".join(f"{name}: {outcome}" for name, outcome in claim.outcomes.items())
    return f"**Outcome by regime: {given}.**"


def _verdicts(claim: Claim) -> str:
    """Return a table of the runs with an effect, and a picture of the effects."""
    drawn = {row["run"] for row in claim.decided}
    others = [row for row in claim.rows if row["verdict"] != UNTESTED and row["run"] not in drawn]
    tested, parts = [*claim.decided, *others], []
    if claim.decided:
        parts += [f'<p class="strips">{strip(claim.decided)}</p>', PICTURE]
    if tested:
        cells = pd.DataFrame([_cells(row) for row in tested])
        cells = cells.loc[:, (cells != "").any()]
        parts.append(markdown([*cells], cells.to_numpy().tolist()))
    if untested := [row["run"] for row in claim.rows if row["verdict"] == UNTESTED]:
        parts.append(f"Untested, for lack of a comparison that the rule needs: {', '.join(untested)}.")
    if claim.rows:
        parts.append(f"{{download}}`Every comparison of every run as a CSV file <{claim.id}.csv>`")
    return "\n\n".join(parts)


def _cells(row: pd.Series) -> dict[str, str]:
    name, verdict = row["run"], f"{SIGNS[row['verdict']]} {row['verdict']}"
    return {
        "run": name if row["regime"] == PRINTED else f"[{name}](../../reported/{name}/README.md)",
        "regime": row["regime"],
        "verdict": verdict + (" (demonstration)" if demonstrates(row) else ""),
        "stability": row["stability"],
        "effect (95 %)": effect(row, row["unit"]),
        "over": over(row),
        "premise not met": "; ".join(unmet(row["premise"])),
        "what would change it": row["change"],
    }


def _rule(claim: Claim) -> str:
    stated = claim.stated
    given = {
        "The effect": f"{stated['effect']}: {needed(stated)}",
        "Source of the threshold": stated["threshold_source"],
        "Budgets": f"{stated['budgets']} ({stated['budgets_reason']})" if stated["budgets"] else "",
        "Premise": _premise(claim),
        "In the abstract": stated["abstract"].partition(": ")[2],
        "Notebook": f"[{stated['notebook']}](../../notebooks/{stated['notebook']}.ipynb)",
    }
    return "## Rule\n\n" + "\n".join(f"- {name}: {text}" for name, text in given.items() if text)


def _premise(claim: Claim) -> str:
    """Return the conditions of a claim's premise, each with the sentence of the paper that supports it."""
    sources = pd.read_csv(PREMISES, keep_default_na=False).to_dict("records")
    parts = []
    for condition in filter(None, claim.stated["premise"].split(" & ")):
        quoted = [
            f' (section {source["section"]}: "{source["quote"]}". {source["reason"]})'
            for source in sources
            if source["condition"] == condition
            and any(fnmatch(claim.id, pattern) for pattern in source["claims"].split())
        ]
        parts.append(f"`{condition}`{''.join(quoted)}")
    return "; ".join(parts) or "none"


def _runs(claim: Claim) -> str:
    """Return every comparison of every run, a folded table per run."""
    parts = []
    for row in claim.rows:
        found, notes = comparisons(row)
        cells = [
            [one.what, f"{one.effect:.3g}", "{:.3g} to {:.3g}".format(*one.interval) if one.interval else "",
             f"{SIGNS[one.verdict]} {one.verdict}" if one.verdict else "", "yes" if one.decides else ""]
            for one in found
        ]  # fmt: skip
        header = [
            "comparison",
            f"effect ({row['unit']})" if row["unit"] else "effect",
            "95 % interval",
            "alone",
            "decides",
        ]
        table = markdown(header, cells) if cells else ""
        listed = "\n".join(f"- {note}" for note in notes)
        inner = "\n\n".join(filter(None, [table, listed]))
        parts.append(f"<details><summary>{row['run']}: {row['verdict']}</summary>\n\n{inner}\n\n</details>")
    about = (
        "*Alone* is the verdict of a comparison by its own interval. A claim about several rivals holds if each does, and fails"
        " if one does with the interval of Holm's correction ([how to read the ledger](../ledger.md))."
    )
    return "\n\n".join(["## Every comparison", about, *parts]) if parts else ""


def _code(claim: Claim) -> str:
    """Return the code of the claim's test, each function with a link to its module if the site shows it."""
    blocks, documented = [], re.findall(r"automodule:: (\S+)", REFERENCE.read_text(encoding="utf-8"))
    for function in functions_of(claim.id):
        path, line = place_of(function)
        place = f"{path.as_posix()}, line {line}"
        if function.__module__ in documented:
            place = f'<a href="../../_modules/{path.with_suffix("").as_posix()}.html">{place}</a>'
        blocks.append(f"{place}\n\n```python\n{textwrap.dedent(inspect.getsource(function)).strip()}\n```")
    given = "\n".join(f"- `{argument}`" for argument in arguments_of(claim.id))
    if given:
        blocks.append(f"Arguments:\n\n{given}")
    return "\n\n".join(["## Code of the rule", *blocks])


def _changes(claim: Claim) -> str:
    rows = changes_of(claim.id)
    general = "Changes of groups of claims are in [Rules changed after a run](../rule-changes.md)."
    if not rows:
        return f"## Changes of the rule\n\nNone of this claim alone. {general}"
    cells = [[re.sub(r"\]\(\.\./", "](../../", cell) for cell in row] for row in rows]
    width = max(map(len, cells))
    header = ["date", "claims", "before", "after", "runs already seen", "why"][:width]
    return f"## Changes of the rule\n\n{markdown(header, [row[:width] for row in cells])}\n\n{general}"
