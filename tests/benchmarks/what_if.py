"""How long a change takes on the page What if: `python tests/benchmarks/what_if.py ADDRESS [N]`, of a served site.

Milliseconds from the change to the finished page, the median and the longest of 40, for a hyperparameter and for the
context, of models of several kinds, or of each Nth of the catalogue that has numbers. Chromium at /usr/bin/chromium or
the one that Playwright installed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))

from macros.catalogue import presets

MODELS = ("llama3-8b", "gemma3-27b", "deepseek-v3", "qwen3-next-80b-a3b")
CHANGE = """async ([name, value]) => {
  const field = document.querySelector(`[data-field="${name}"], [name="${name}"]`)
  const place = document.querySelector(".ep-tool")
  delete place.dataset.milliseconds
  field.value = value
  field.dispatchEvent(new Event("input", { bubbles: true }))
  while (!place.dataset.milliseconds) await new Promise(requestAnimationFrame)
  return Number(place.dataset.milliseconds)
}"""


def measured(page: Page, name: str, start: int, step: int) -> list[float]:
    return [page.evaluate(CHANGE, [name, str(start + i * step)]) for i in range(45)][5:]


def said(times: list[float]) -> str:
    return f"{median(times):.1f} ({max(times):.1f}) ms"


def main(address: str, every: str | None = None) -> None:
    slugs = [slug for slug in presets.paths() if presets.preset(slug).config][:: int(every)] if every else MODELS
    chromium, sizes, contexts, firsts = Path("/usr/bin/chromium"), [], [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium) if chromium.exists() else None)
        for slug in slugs:
            page = browser.new_page()
            page.goto(f"{address.rstrip('/')}/tools/what-if/?model={slug}")
            page.locator(".ep-answer strong").wait_for()
            first = page.locator(".ep-tool").get_attribute("data-answered")
            page.locator(".ep-tool[data-milliseconds]").wait_for()
            size, context = measured(page, "vocab_size", 50_000, 128), measured(page, "context", 1_000, 128)
            print(f"{slug}: first answer {first} ms; a size {said(size)}; the context {said(context)}", flush=True)
            sizes, contexts, firsts = [*sizes, *size], [*contexts, *context], [*firsts, float(first)]
            page.close()
    print(f"{len(slugs)} models: first answer {said(firsts)}; a size {said(sizes)}; the context {said(contexts)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
