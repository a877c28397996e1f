"""The report of a run, one offline HTML page: main verdicts and figure, claims, all figures with their findings, settings."""

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jinja2
import nbformat
import pandas as pd
import yaml

from replication.claims.compared import with_comparisons
from replication.claims.finding import UNTESTED, VERDICTS
from replication.claims.overview import demonstrates, in_abstracts, overview
from replication.claims.runs import PAPERS, known, ledgers
from replication.claims.stability import counted
from replication.claims.stated import check_claims
from replication.files.machines import joined, machines
from replication.files.manifest import read_manifest
from replication.files.provenance import source_hash
from replication.files.verification import listed_files
from replication.report.checks import check_notebook
from replication.report.facts import commit, finished, texts
from replication.run.layout import MaskedLM

#: Figure at the top of the page: the papers' central comparison.
FIRST = "sparsefinder/fig04_tradeoff"
#: The attention explorer, beside the page.
EXPLORER = "explorer.html"
#: Folders of figures in the order of the page: the paper that the repository is about first.
FOLDERS = ("sparsefinder", "", "retrofit", "extremely_sparse", "explicit_sparse", "factorised")
#: Where the page files claims whose verdict says nothing of a paper.
DEMONSTRATION, NO_FINDING = "demonstration", "identity or own claim"


@dataclass(frozen=True)
class ReportFigure:
    """A figure with its notebook's title and first paragraph, and the tested claims that it shows."""

    name: str
    title: str
    about: str
    svg: bytes
    findings: list[object]

    @property
    def address(self) -> str:
        """Return the picture as part of a page's ``<img>``, in which browsers run no scripts and load nothing."""
        return f"data:image/svg+xml;base64,{b64encode(self.svg).decode()}"

    @property
    def narrow(self) -> bool:
        """Return whether the figure is at most a column wide (3.03 inches at 72 points)."""
        width = re.search(rb'<svg[^>]* width="([\d.]+)pt"', self.svg)
        return width is not None and float(width[1]) < 300


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
    FormatError
        If one of the run's notebooks shows another run.
    """
    results = root / "results" / profile
    for notebook in listed_files(results / "notebooks", "**/*.ipynb"):
        check_notebook(notebook, profile)
    claims = pd.read_csv(root / "config/published/claims.csv", keep_default_na=False)
    check_claims(claims, f"{root / 'config/published/claims.csv'}")
    claims = with_comparisons(claims, results)
    runs = ledgers(root, profile)
    if profile not in runs:
        raise FileNotFoundError(f"{results}: has no claims.csv; run the workflow first")
    rows = list(overview(claims, runs[profile]).itertuples())
    others = {name: list(known(claims, run).itertuples()) for name, run in runs.items() if name != profile}
    judged = [Judged(row, _elsewhere(others, row.number - 1)) for row in rows]
    by_id = {claim.row.id: claim for claim in judged}
    counts = pd.Series([claim.filed for claim in judged]).value_counts()
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    template = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined).get_template(
        "page.html"
    )
    figures = list(pictures(results, rows))
    settings = (results / "config.yaml").read_text(encoding="utf-8")
    origins = machines(read_manifest(results))
    is_of_commit = not origins or any(origin["source"] == source_hash() for origin in origins)
    return template.render(
        profile=profile,
        texts=texts(yaml.safe_load(settings)),
        date=finished(results),
        commit=commit(root) if is_of_commit else "",
        counts={filed: counts.get(filed, 0) for filed in (*VERDICTS, NO_FINDING, DEMONSTRATION)},
        main=[by_id[name] for name in in_abstracts(claims)["id"]],
        papers={paper: [claim for claim in judged if claim.row.paper == paper] for paper in claims["paper"].unique()},
        first=[picture for picture in figures if picture.name == FIRST],
        pictures=[picture for picture in figures if picture.name != FIRST],
        # A claim links to its figure on this page if there is one, and to its notebook's page otherwise.
        drawn={picture.name for picture in figures},
        explorer=EXPLORER if MaskedLM(results / "masked_lm").passage.exists() else "",
        settings=settings,
        made_on=joined(origins),
    )


@dataclass(frozen=True)
class Judged:
    """A claim in this run, and its ledger rows in the other runs that judge it, by run."""

    row: object
    elsewhere: dict[str, object]

    @property
    def filed(self) -> str:
        """Return the verdict as it counts, and for generated data, or a claim that is no finding of a paper, what it is."""
        if demonstrates(self.row):
            return DEMONSTRATION
        return counted(self.row.verdict, self.row.stability) if self.row.kind == "finding" else NO_FINDING

    @property
    def together(self) -> str:
        """Return the numbers of other runs with each verdict in words, such as ``2 hold, 1 fails``."""
        real = [row for name, row in self.elsewhere.items() if name != PAPERS and not demonstrates(row)]
        words = [counted(row.verdict, row.stability) for row in real]
        plural = {"holds": "hold", "fails": "fail"}
        counts = {verdict: words.count(verdict) for verdict in VERDICTS if verdict in words}
        return ", ".join(f"{n} {plural.get(verdict, verdict) if n > 1 else verdict}" for verdict, n in counts.items())


def _elsewhere(others: dict[str, list], number: int) -> dict[str, object]:
    """Return the ledger rows of the claim with this number, counted from 0, in the runs that judge it."""
    return {name: rows[number] for name, rows in others.items() if rows[number].verdict != UNTESTED}


def pictures(results: Path, claims: list) -> Iterator[ReportFigure]:
    """Yield every figure of a run that has a notebook, by paper and name."""
    notebooks = listed_files(results / "notebooks", "**/*.ipynb")
    drawn = listed_files(results / "figures", "**/*.svg")
    for path in sorted(drawn, key=lambda path: _order(results / "figures", path)):
        name = path.relative_to(results / "figures").with_suffix("").as_posix()
        notebook = results / "notebooks" / f"{name}.ipynb"
        if notebook in notebooks:
            title, about = introduction(notebook)
            yield ReportFigure(name, title, about, path.read_bytes(), [
                claim for claim in claims if claim.notebook == name and claim.verdict != UNTESTED
            ])  # fmt: skip


def _order(figures: Path, path: Path) -> tuple[int, list]:
    """Return the sort key of a figure: its paper, then its name with numbers as numbers."""
    folder = path.relative_to(figures).parent.as_posix().removeprefix(".")
    place = FOLDERS.index(folder) if folder in FOLDERS else len(FOLDERS)
    return place, [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", path.stem)]


def introduction(notebook: Path) -> tuple[str, str]:
    """Return a notebook's title, and its first paragraph without Markdown."""
    source = nbformat.read(notebook, as_version=4).cells[0].source
    title, _, text = source.partition("\n")
    paragraph = text.strip().split("\n\n")[0]
    linked = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraph)
    return title.removeprefix("# "), re.sub(r"[*`]", "", linked)
