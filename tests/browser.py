"""Headless Chromium, for tests of pages."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium")


def browse(address: str, *options: str) -> str:
    """Return a page as the browser has made it, which must not complain of anything."""
    always = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr"]
    command = [BROWSER, *always, "--virtual-time-budget=8000", "--dump-dom", *options, address]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert [line for line in found.stderr.splitlines() if "CONSOLE" in line] == []
    return found.stdout


def act(page: Path, actions: str, width: int = 390) -> str:
    """Return the title that JavaScript gives to the frame of a page after actions on its document, called ``page``.

    ``choose(id, value)`` moves a control. Actions are within single quotes, so they have none.
    """
    frame = page.with_name("frame.html")
    frame.write_text(
        f"""<iframe src="{page.name}" style="width: {width}px; height: 800px; border: 0" onload='
        const page = this.contentDocument, choose = (id, value) => {{
          const control = page.getElementById(id);
          if (control.type === "checkbox") control.checked = value; else control.value = value;
          control.dispatchEvent(new Event("input")); }};
        {actions}'></iframe>""",
        encoding="utf-8",
    )
    try:
        shown = browse(frame.as_uri(), "--allow-file-access-from-files")
    finally:
        frame.unlink()
    return re.search(r"<title>(.*?)</title>", shown, re.DOTALL)[1]
