"""The page about the default run, as a browser shows it."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from replication.files.paths import ROOT

PAGE = ROOT / "results/demo/report.html"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium")


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
            self.loads += [found[name] for name in ("src", "href") if name in found]
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


def browse(*options: str) -> subprocess.CompletedProcess:
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        *options,
        PAGE.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@in_a_browser
def test_a_browser_has_nothing_to_complain_of_and_shows_verdicts_claims_and_figures():
    shown = browse("--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom")
    assert [line for line in shown.stderr.splitlines() if "CONSOLE" in line] == []
    numbers = re.findall(r"<b>(\d+)</b>", shown.stdout)
    rows = re.findall(r'<tr id="', shown.stdout)
    assert sum(map(int, numbers)) == len(rows) > 50
    assert shown.stdout.count("<figure>") >= 25
    assert shown.stdout.index("<b>") < shown.stdout.index("<table>") < shown.stdout.index("<figure>")
