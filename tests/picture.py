"""The README's picture of the site: `python tests/picture.py [SITE]`, from the repository.

Serves a built site (site/) and writes docs/assets/readme-light.webp and readme-dark.webp. Needs Chromium.
"""

from __future__ import annotations

import base64
import shutil
import sys
from pathlib import Path

from copies import ROOT
from playwright.sync_api import sync_playwright
from serving import served

PAGE = "models/llama/llama3-8b/"
SIZE = {"width": 1240, "height": 720}
LARGEST = 100_000  # bytes of each


def main(site: str = "site") -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with served(Path(site)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)
            page.goto(f"{address}{PAGE}")
            page.evaluate("document.fonts.ready")
            taken = page.context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": 80})
            data = base64.b64decode(taken["data"])
            assert len(data) < LARGEST, f"{len(data):,} bytes"
            (ROOT / f"docs/assets/readme-{scheme}.webp").write_bytes(data)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
