"""The page about the default run, as a browser shows it."""

import re
from html.parser import HTMLParser

from browser import act, browse, in_a_browser

from replication.files.paths import ROOT

PAGE = ROOT / "results/demo/report.html"


class Links(HTMLParser):
    """Where a page leads, what it loads, and the places that it names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.leads, self.loads, self.places = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if tag == "a":
            self.leads.append(found["href"])
        elif tag not in ("use", "text", "tspan"):  # these point to shapes within a picture
            loads = [found[name] for name in ("src", "href") if name in found]
            self.loads += [address for address in loads if not address.startswith("data:image/svg+xml;base64,")]
        if "id" in found:
            self.places.add(found["id"])


def test_every_link_leads_somewhere_and_nothing_is_loaded():
    links = Links(PAGE.read_text(encoding="utf-8"))
    assert links.loads == []
    inside = [link[1:] for link in links.leads if link.startswith("#")]
    beside = [link for link in links.leads if not link.startswith("#")]
    assert len(inside) > 80
    assert len(beside) > 60
    assert [place for place in inside if place not in links.places] == []
    assert [link for link in beside if not (PAGE.parent / link).exists()] == []


def test_it_is_small():
    assert PAGE.stat().st_size < 5 * 2**20


@in_a_browser
def test_a_browser_has_nothing_to_complain_of_and_shows_verdicts_claims_and_figures():
    shown = browse(PAGE.as_uri())
    numbers = re.findall(r"<b>(\d+)</b>", shown)
    rows = re.findall(r'<tr id="', shown)
    assert sum(map(int, numbers)) == len(rows) > 50
    assert shown.count("<figure") >= 25
    assert f"{len(rows)} of {len(rows)} claims shown" in shown
    parts = [shown.index(text) for text in ("<table class", "<figure", "<b>", '<tr id="', 'id="figures"')]
    assert parts == sorted(parts)


@in_a_browser
def test_it_is_as_wide_as_a_phone(tmp_path):
    """No part of the page is wider than 390 pixels, so that nobody scrolls sideways."""
    (tmp_path / PAGE.name).symlink_to(PAGE)
    assert int(act(tmp_path / PAGE.name, "document.title = page.documentElement.scrollWidth")) <= 390
