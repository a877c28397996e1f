"""Write the article as HTML and PDF, with numbers from ledgers and tables: python workflow/scripts/article.py FOLDER"""

import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import typst
import yaml

from replication.claims.finding import FAILS, HOLDS
from replication.files.paths import ROOT
from replication.files.storage import replacing
from replication.tables import claims, findings, regimes

SOURCE = ROOT / "docs" / "article.typ"
#: Columns of the runs' table, which has more than a page is wide.
RUN_COLUMNS = ("run", "regime", "model", "text", "tokens", "gold share", "perplexity, BLEU or bits")
#: Figures by their name in the article: picture, what draws it, and run.
FIGURES = {
    "explorer": ("figures/explorer", "workflow/scripts/figures.py", "demo"),
    "verdicts": ("figures/verdicts", "workflow/scripts/figures.py", "all"),
    "encoder": ("demo/figures/sparsefinder/fig04_tradeoff", "notebooks/sparsefinder/fig04_tradeoff.ipynb", "demo"),
    "translation": (
        "multi30k/figures/sparsefinder/fig02_translation",
        "notebooks/sparsefinder/fig02_translation.ipynb",
        "multi30k",
    ),
    "blocks": (
        "brown-512/figures/sparsefinder/fig07_efficient",
        "notebooks/sparsefinder/fig07_efficient.ipynb",
        "brown-512",
    ),
}


def data() -> dict:
    """Return everything in the article that comes from files: numbers, sentences, tables, findings and figures."""
    profile = yaml.safe_load((ROOT / "config/demo.yaml").read_text(encoding="utf-8"))
    kinds, outcomes = claims.published()["kind"].value_counts(), claims.outcomes()
    given = [outcome for outcome in outcomes.to_numpy().flat if outcome]
    counted, by_regime = claims.verdicts().split("\n\n")
    runs = _cells(regimes.regimes())
    chosen = [runs[0].index(name) for name in RUN_COLUMNS]
    matches = re.findall(r"^\d+\. \*\*(.+?)\*\* (.+)$", findings.findings(), re.MULTILINE)
    return {
        "citation": yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8")),
        "commit": _commit("."),
        "numbers": {
            "findings": int(kinds["finding"]),
            "identities": int(kinds["identity"]),
            "own": int(kinds["ours"]),
            "decided": int((outcomes != "").any(axis=1).sum()),
            "outcomes": len(given),
            "holds": given.count(HOLDS),
            "fails": given.count(FAILS),
            "mixed": len(given) - given.count(HOLDS) - given.count(FAILS),
            "runs": len(claims.findings()),
            "dimension": profile["masked_lm"]["projection"]["dimension"],
            "length": profile["masked_lm"]["length"],
            "seeds": len(profile["student_seeds"]),
            "budgets": _listed(profile["masked_lm"]["replaced"]["budgets"]["gold_multiples"]),
        },
        "sentences": {
            "counted": counted.replace("**", ""),
            "stable": claims.stable(),
            "lost": claims.lost_at_gold(),
        },
        "tables": {
            "runs": [[row[place] for place in chosen] for row in runs],
            "outcomes": _cells(by_regime),
            "abstracts": _cells(claims.abstracts()),
        },
        "findings": [list(match) for match in matches],
        "figures": {name: _figure(*places) for name, places in FIGURES.items()},
    }


def _cells(table: str) -> list[list[str]]:
    """Return the header and the rows of a Markdown table, with links as their text."""
    header, _, *rows = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", table).splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in (header, *rows)]


def _listed(values: list) -> str:
    return f"{', '.join(map(str, values[:-1]))} and {values[-1]}"


def _figure(picture: str, drawn_by: str, run: str) -> dict[str, str]:
    path = f"reported/{picture}.svg"
    if missing := [place for place in (path, drawn_by) if not (ROOT / place).exists()]:
        raise FileNotFoundError(f"{', '.join(missing)}: a figure of the article needs this file")
    return {"path": f"/{path}", "drawn_by": drawn_by, "run": run, "commit": _commit(path)}


def _commit(path: str) -> str:
    """Return the commit that changed a path last, or words to that effect outside of a git checkout."""
    command = ["git", "log", "-1", "--format=%h", "--", path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown (no git checkout)"


def article(kind: str, inputs: dict, source: Path = SOURCE) -> bytes | list[bytes]:
    """Return the article with the given :func:`data` as ``html``, ``pdf`` or, a picture per page, ``png``."""
    fonts = Path(matplotlib.get_data_path(), "fonts", "ttf")  # those of the figures
    given = {"data": json.dumps(inputs).replace("'", "’")}
    return typst.compile(source, root=ROOT, format=kind, font_paths=[fonts], sys_inputs=given)


def main() -> None:
    folder = Path(*sys.argv[1:] or ["build/article"])
    folder.mkdir(parents=True, exist_ok=True)
    inputs = data()
    for kind in ("html", "pdf"):
        with replacing(folder / f"article.{kind}") as temporary:
            temporary.write_bytes(article(kind, inputs))
        print(f"article  {folder / f'article.{kind}'}")


if __name__ == "__main__":
    main()
