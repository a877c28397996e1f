"""Figures as they are printed: what stands in the files of the default run, at their own width."""

import re
import zlib
from pathlib import Path

import pytest

from replication.files.paths import ROOT

FIGURES = ROOT / "results/demo/figures"
WIDTHS, HIGHEST = (6.3, 3.03), 9.4
POINTS = 72  # per inch


def drawn(suffix: str) -> list[Path]:
    return sorted(FIGURES.rglob(f"*{suffix}"))


def fonts(pdf: bytes) -> list[float]:
    """Sizes in points of all text in a page that matplotlib wrote: it scales no text but by its size."""
    contents = b""
    for start in re.finditer(rb"FlateDecode.*?>>\s*stream\r?\n", pdf, re.DOTALL):
        contents += zlib.decompressobj().decompress(pdf[start.end() :])
    return [float(size) for size in re.findall(rb"/F\d+ ([\d.]+) Tf", contents)]


def test_there_are_figures():
    assert len(drawn(".pdf")) == len(drawn(".svg")) >= 25


@pytest.mark.parametrize("path", drawn(".pdf"), ids=lambda path: path.stem)
def test_a_pdf_is_as_wide_as_a_page_or_a_column_and_can_be_read_there(path):
    pdf = path.read_bytes()
    width, height = (float(x) / POINTS for x in re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf).groups())
    assert any(width == pytest.approx(allowed, abs=0.01) for allowed in WIDTHS)
    assert height <= HIGHEST
    assert min(fonts(pdf)) >= 6


@pytest.mark.parametrize("path", drawn(".svg"), ids=lambda path: path.stem)
def test_an_svg_holds_text_and_shapes_no_pictures(path):
    svg = path.read_text(encoding="utf-8")
    assert svg.count("<text") > 3
    assert "<image" not in svg
    assert len(svg) < 2**20
