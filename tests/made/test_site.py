"""The site that `make docs` has built: its links, and what a browser says of it."""

import re
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

import pytest
from browser import act, browse, in_a_browser

from replication.files.paths import ROOT
from replication.tables.claims import published

SITE = ROOT / "build/site"
ELSEWHERE = ("http://", "https://", "mailto:", "data:")


def test_it_has_the_guide_every_notebook_and_the_reference():
    pages = {path.relative_to(SITE).with_suffix("").as_posix() for path in SITE.rglob("*.html")}
    notebooks = {path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "notebooks").rglob("*.ipynb")}
    texts = {path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(texts) > 20
    assert {name for name in notebooks if ".ipynb_checkpoints" not in name} | texts <= pages


def test_no_link_is_broken_and_nothing_is_loaded_from_elsewhere():
    broken, texts = set(), {path: path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")}
    for path, text in texts.items():
        assert not re.search(r'(?:src|<link[^>]*href)="https?:', text), path
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            place, _, anchor = link.partition("#")
            target = (path.parent / unquote(place.partition("?")[0])).resolve() if place else path
            if link.startswith(ELSEWHERE):
                continue
            if not target.exists() or (anchor and target in texts and f'id="{anchor}"' not in texts[target]):
                broken.add((path.name, link))
    assert broken == set()


def test_no_page_shows_a_table_as_text():
    raw = [path.name for path in SITE.rglob("*.html") if re.search(r"<p>\| ", path.read_text(encoding="utf-8"))]
    assert raw == []


def test_three_clicks_lead_from_home_to_the_rows_and_the_code_of_every_rule():
    ledger = "docs/claims/index.html"
    assert 'href="claims/index.html"' in read("docs/index.html")
    claims = set(re.findall(r'href="([\w-]+)\.html"', read(ledger)))
    assert claims == set(published()["id"])
    for claim in claims:
        page = read(f"docs/claims/{claim}.html")
        assert "Code of the rule" in page
        rows = re.search(rf'href="([^"]+/{claim}\.csv)"', page)
        # A claim that no run measured has no rows.
        assert rows or "No run on real data decides" in page
        if rows:
            assert (SITE / "docs/claims" / rows[1]).read_text(encoding="utf-8").startswith("id,run,regime,")


def read(page: str) -> str:
    return (SITE / page).read_text(encoding="utf-8")


def test_the_home_page_has_five_cards_with_links():
    cards = read("docs/index.html").split('class="card docutils container"')[1:]
    assert len(cards) == 5
    for card in cards:
        assert re.search(r'<a [^>]*href="[^"]+">', card)


def test_every_reference_page_begins_with_a_summary_of_its_names():
    for path in (SITE / "docs/reference").glob("*.html"):
        if path.stem != "index":
            text = path.read_text(encoding="utf-8")
            assert text.index("<table class=") < text.index('<dl class="py'), path.stem
            assert not re.search(r"\((?:Eqs?|App|Figs?)\.</p>", text), path.stem
            # Parameters in lines of their own are no list within a term.
            assert '<dd><em class="sig-param">' not in text, path.stem


def test_every_notebook_can_be_downloaded_and_its_picture_in_the_index_has_a_text():
    for path in (SITE / "notebooks").rglob("*.html"):
        assert re.search(rf'href="[^"]*{path.stem}\.ipynb"', path.read_text(encoding="utf-8")), path.stem
    figures = [path for path in (SITE / "notebooks").glob("*/*.html") if "fig" in path.stem]
    named = {path.stem: re.findall(r'<img alt="([^"]*)"', path.read_text(encoding="utf-8")) for path in figures}
    assert [name for name, texts in named.items() if not texts or not all(" " in text for text in texts)] == []
    pictures = re.findall(r'<img alt="([^"]*)"', read("notebooks/index.html"))
    assert len(pictures) > 20
    assert [text for text in pictures if len(text) < 10 or "base64" in text] == []


@pytest.fixture(scope="module")
def address():
    """Where the site is served: a browser that reads files lets no page search the others."""

    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *said: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=SITE)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@in_a_browser
@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("index.html", "How a predictor works"),
        ("docs/reference/kernels.html", "block_sparse_entmax_attention"),
        ("notebooks/sparsefinder/fig04_tradeoff.html", "<img"),
        ("notebooks/claims.html", "✓ holds"),
        ("docs/claims/index.html", "claims have a verdict"),
        ("docs/explorer.html", "Layer 1, head 1"),
        # What was searched for is found, by what runs in the browser.
        ("search.html?q=entmax", "docs/limits.html"),
        ("search.html?q=install", "docs/start.html"),
        ("docs/start.html", "copybtn"),
    ],
)
def test_a_browser_has_nothing_to_complain_of(address, page, shown):
    assert shown in browse(f"{address}/{page}")


@in_a_browser
@pytest.mark.parametrize(
    ("page", "screens"),
    [
        (SITE / "docs/index.html", 1),
        (SITE / "reported/README.html", 3),
        (SITE / "docs/claims/index.html", 4),
        (ROOT / "results/demo/report.html", 12),
    ],
)
def test_a_page_has_at_most_so_many_screens(tmp_path, page, screens):
    if page.is_relative_to(ROOT / "results"):  # in which nothing else may lie
        page = Path(shutil.copy(page, tmp_path))
    height = float(act(page, "document.title = page.documentElement.scrollHeight", 1280))
    assert (screens - 1) * 400 < height <= screens * 800


@in_a_browser
@pytest.mark.parametrize("page", ["docs/library.html", "docs/reference/claims.html"])
def test_what_scrolls_takes_the_focus(page):
    scrolling = '[...page.querySelectorAll("pre, .table-wrapper")].filter(part => part.scrollWidth > part.clientWidth)'
    found = act(
        SITE / page, f"document.title = {scrolling}.length + ` ` + {scrolling}.filter(part => part.tabIndex < 0).length"
    )
    count, without = map(int, found.split())
    assert count > 0
    assert without == 0


def test_the_article_is_on_the_site_and_home_leads_to_it():
    assert 'href="article.html"' in read("docs/index.html")
    assert "Reproducibility summary" in read("docs/article.html")
    assert (SITE / "docs/article.pdf").read_bytes().startswith(b"%PDF")
