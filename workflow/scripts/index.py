"""Write notebooks/index.ipynb, which lists each notebook's first picture, title and first sentence; --check only compares."""

import base64
import io
import json
import re
import sys
from pathlib import Path

from PIL import Image

from replication.files.needs import needs_of
from replication.files.paths import ROOT, missing_needs
from replication.files.storage import replacing

FOLDER = ROOT / "notebooks"
INDEX = FOLDER / "index.ipynb"
#: Heading of each folder, in the order of the papers.
PARTS = {
    ".": "Patterns, claims, and a tutorial",
    "sparsefinder": "Sparsefinder (Treviso et al. 2022)",
    "retrofit": "Sparsify your own model",
    "explicit_sparse": "Explicit Sparse Transformer (Zhao et al. 2019)",
    "extremely_sparse": "Extremely Sparse Transformer",
    "factorised": "Generating Long Sequences with Sparse Transformers (Child et al. 2019)",
}
HEAD = """# All notebooks

Each notebook draws one figure or table of a run. Its parameter `profile` in its first cell names the run. Pictures
show the demo. The last table lists which notebooks draw another run. The tutorial trains its own model."""
RUNS_HEAD = """## Notebooks by stored run

Set `profile` to one of these runs, in one of its notebooks. Every notebook draws `demo` once `make results` has made it. The
[ledger](claims.ipynb) shows every run, and the factorised patterns are drawn without one."""
#: Thumbnail width in pixels, and spaces of the same width: without them, browsers shrink the column and its pictures.
WIDTH, WIDE = 160, "&nbsp;" * 40


def index() -> str:
    """Return the index notebook as JSON."""
    cells = [_cell(HEAD)]
    for folder, title in PARTS.items():
        rows, pictures = [], {}
        for path in sorted((FOLDER / folder).glob("*.ipynb")):
            if path == INDEX:
                continue
            notebook = json.loads(path.read_text(encoding="utf-8"))
            name = path.relative_to(FOLDER).as_posix()
            heading, sentence = _introduction(notebook)
            picture = _thumbnail(notebook)
            if picture is not None:
                pictures[f"{path.stem}.png"] = {"image/png": picture}
            shown = f"![{heading}](attachment:{path.stem}.png)" if picture is not None else ""
            rows.append(f"| {shown} | [{heading}]({name}) | {sentence} |")
        table = "\n".join([f"| {WIDE} | | |", "|---|---|---|", *rows])
        cells.append(_cell(f"## {title}\n\n{table}", pictures))
    cells.append(_cell(f"{RUNS_HEAD}\n\n{runs_table()}"))
    # JupyterLab writes the kernel's description into a notebook. With the metadata of an executed notebook nothing changes, so
    # the index is not opened as modified.
    executed = json.loads((FOLDER / "claims.ipynb").read_text(encoding="utf-8"))["metadata"]
    for number, cell in enumerate(cells):
        cell["id"] = f"part{number}"
    notebook = {
        "cells": cells,
        "metadata": {name: executed[name] for name in ("kernelspec", "language_info")},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def runs_table() -> str:
    """Return a Markdown table of the stored runs and of the notebooks that draw them."""
    needs = {path: needs_of(path) for path in [*sorted(FOLDER.glob("[!.]*/*.ipynb")), FOLDER / "00_patterns.ipynb"]}
    rows = []
    for run in sorted(path.parent for path in ROOT.glob("reported/*/README.md")):
        drawing = [path for path, need in needs.items() if need and not missing_needs(run, need)]
        links = ", ".join(f"[{path.stem}]({path.relative_to(FOLDER).as_posix()})" for path in drawing)
        if run.name != "demo":
            rows.append(f"| [{run.name}](../reported/{run.name}/README.md) | {links} |")
    return "\n".join(["| run | notebooks |", "|---|---|", *rows])


def _cell(source: str, attachments: dict | None = None) -> dict:
    cell = {"cell_type": "markdown", "metadata": {}, "source": source.splitlines(keepends=True)}
    return cell | ({"attachments": attachments} if attachments else {})


def _introduction(notebook: dict) -> tuple[str, str]:
    """Return a notebook's title and the first sentence after it."""
    title, _, text = "".join(notebook["cells"][0]["source"]).partition("\n")
    sentence = re.split(r"(?<=[.?!])(?<!et al\.)\s", text.strip(), maxsplit=1)[0]
    # Drop links: they are relative to the notebook's folder, not to the index.
    return title.removeprefix("# "), re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", sentence).replace("|", r"\|")


def _thumbnail(notebook: dict) -> str | None:
    """Return a thumbnail of the first picture among the outputs, in base64, or None without a picture."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    pictures = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    if not pictures:
        return None
    picture = Image.open(io.BytesIO(base64.b64decode("".join(pictures[0])))).convert("RGB")
    small = picture.resize((WIDTH, round(WIDTH * picture.height / picture.width)), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.quantize(64).save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def main() -> None:
    """Write the index, or exit with an error if it is outdated and --check is given."""
    new = index()
    if INDEX.exists() and INDEX.read_text(encoding="utf-8") == new:
        return
    if "--check" in sys.argv:
        sys.exit(f"{INDEX.relative_to(ROOT)}: must match the notebooks, got an outdated index; run `make notebooks`")
    with replacing(INDEX) as temporary:
        Path(temporary).write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
