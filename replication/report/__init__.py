"""The report of a run, one offline HTML page: verdicts, claims, figures with their findings, and settings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jinja2
import nbformat
import pandas as pd

from replication.claims.finding import UNTESTED
from replication.claims.overview import demonstrates, overview
from replication.claims.runs import known, ledgers
from replication.files.storage import provenance


@dataclass(frozen=True)
class ReportFigure:
    """A figure with its notebook's title and first paragraph, and the tested claims that it shows."""

    name: str
    title: str
    about: str
    svg: str
    findings: list[object]


def page(root: Path, profile: str) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    root : Path
        Folder with ``config/published/claims.csv``, ``reported`` and ``results``.
    profile : str
        Name of a run below ``results`` that has a ledger.

    Raises
    ------
    FileNotFoundError
        If the run has no ledger or no configuration.
    """
    results = root / "results" / profile
    claims = pd.read_csv(root / "config/published/claims.csv", keep_default_na=False)
    runs = ledgers(root, profile)
    if profile not in runs:
        raise FileNotFoundError(f"{results}: has no claims.csv; run the workflow first")
    rows = list(overview(claims, runs[profile]).itertuples())
    others = {name: list(known(claims, run).itertuples()) for name, run in runs.items() if name != profile}
    papers = {paper: _paper([row for row in rows if row.paper == paper], others) for paper in claims["paper"].unique()}
    counts = runs[profile]["verdict"].value_counts()
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    template = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined).get_template(
        "page.html"
    )
    figures = list(pictures(results, rows))
    return template.render(
        profile=profile,
        counts={
            verdict: counts.get(verdict, 0) for verdict in ("holds", "fails", "undecided", "not comparable", UNTESTED)
        },
        demonstration=sum(demonstrates(row) for row in rows),
        papers=papers,
        pictures=figures,
        # A claim links to its figure on this page if there is one, because browsers show notebooks as text.
        drawn={picture.name for picture in figures},
        settings=(results / "config.yaml").read_text(encoding="utf-8"),
        made_on=provenance(),
    )


def _paper(rows: list, others: dict[str, list]) -> dict[str, object]:
    """Return the claims of a paper, with the verdicts of other runs that judge at least one of them."""
    numbers = [row.number - 1 for row in rows]
    cells = {name: [judged[number] for number in numbers] for name, judged in others.items()}
    cells = {name: judged for name, judged in cells.items() if any(row.verdict != UNTESTED for row in judged)}
    return {"runs": list(cells), "rows": list(zip(rows, *cells.values(), strict=True))}


def pictures(results: Path, claims: list) -> Iterator[ReportFigure]:
    """Yield every figure of a run that has a notebook, in the order of their names."""
    for path in sorted((results / "figures").rglob("*.svg")):
        name = path.relative_to(results / "figures").with_suffix("").as_posix()
        notebook = results / "notebooks" / f"{name}.ipynb"
        if notebook.exists():
            title, about = introduction(notebook)
            yield ReportFigure(name, title, about, inline(path.read_text(encoding="utf-8")), [
                claim for claim in claims if claim.notebook == name and claim.verdict != UNTESTED
            ])  # fmt: skip


def introduction(notebook: Path) -> tuple[str, str]:
    """Return a notebook's title, and its first paragraph without Markdown."""
    source = nbformat.read(notebook, as_version=4).cells[0].source
    title, _, text = source.partition("\n")
    paragraph = text.strip().split("\n\n")[0]
    linked = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraph)
    return title.removeprefix("# "), re.sub(r"[*`]", "", linked)


def inline(svg: str) -> str:
    """Return an SVG file as an element of a page, without prolog, metadata and style rules, which would apply to the page."""
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # These attributes replace the one style rule of matplotlib.
    return svg.replace("<svg ", '<svg stroke-linejoin="round" stroke-linecap="butt" role="img" ', 1)
