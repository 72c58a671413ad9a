"""How long the small model takes for its first answer in a fresh browser, of two served sites in turns: `python
tests/benchmarks/first_answer.py ADDRESS BEFORE`.

From opening a link of Choose a country to its answer, without a cache; the ratio of the first site to the second.
Chromium at /usr/bin/chromium or the one that Playwright installed.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

PAIRS = 15


def seconds(browser: Browser, address: str) -> float:
    context = browser.new_context()
    page = context.new_page()
    start = time.perf_counter()
    page.goto(f"{address.rstrip('/')}/real-numbers/step-by-step/?country=Peru")
    page.get_by_role("group", name="Most likely next words").get_by_text("Lima").wait_for()
    taken = time.perf_counter() - start
    context.close()
    return taken


def main(address: str, before: str) -> None:
    chromium = Path("/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium) if chromium.exists() else None)
        for site in address, before:
            seconds(browser, site)
        both = [(seconds(browser, address), seconds(browser, before)) for _ in range(PAIRS)]
        browser.close()
    ratios = sorted(now / then for now, then in both)
    each = " and ".join(f"{statistics.median(one):.2f} s" for one in zip(*both))
    print(
        f"{each}; the ratio {statistics.median(ratios):.2f} ({ratios[PAIRS // 4]:.2f} to {ratios[-1 - PAIRS // 4]:.2f})"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
