"""How long a checkpoint of GPT-2's size takes on the page Run a checkpoint, of a served site: `python
tests/benchmarks/checkpoint.py ADDRESS [FOLDER]`.

Seconds of reading it, of the first next token of a text of ten, and of each further one, in the worker: random weights
in float32 and in bfloat16, or those of a folder. Chromium at /usr/bin/chromium or the one that Playwright installed.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

import ml_dtypes
import numpy as np
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from random_checkpoints import gpt2

IDS = "464,3139,286,4881,318,262,1748,286,262,1578"
GPT2 = dict(vocab_size=50257, n_positions=1024, width=768, layers=12, heads=12, scale=0.02)
TAKEN = re.compile(r"took ([\d.]+) s")
FURTHER = 4


def measured(address: str, folder: Path) -> tuple[float, list[float]]:
    """The seconds of reading a folder, and of each next token."""
    chromium = Path("/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium) if chromium.exists() else None)
        page = browser.new_page()
        page.goto(f"{address.rstrip('/')}/tools/run/")
        page.get_by_label("Folder").wait_for()
        start = time.perf_counter()
        page.get_by_label("Folder").set_input_files(folder)
        page.get_by_text("Ready.").wait_for(timeout=300_000)
        reading, taken = time.perf_counter() - start, []
        page.locator("input[name=text]").fill(IDS)
        for name in ["Run"] + FURTHER * ["Next token"]:
            page.get_by_role("button", name=name, exact=True).click()
            said = page.get_by_text(f"{10 + len(taken)} tokens. The last step took")
            said.wait_for(timeout=300_000)
            page.locator("button[type=submit]:enabled").wait_for()
            taken.append(float(TAKEN.search(said.inner_text())[1]))
        browser.close()
    return reading, taken


def main(address: str, own: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as root:
        kinds = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16}
        folders = {own: Path(own)} if own else {name: Path(root) / name for name in kinds}
        for name, folder in folders.items():
            if not own:
                gpt2(folder, dtype=kinds[name], **GPT2)
            reading, (first, *rest) = measured(address, folder)
            each = ", ".join(f"{seconds:.2f}" for seconds in rest)
            print(f"{name}: read in {reading:.1f} s; the first token {first:.2f} s, further ones {each} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
