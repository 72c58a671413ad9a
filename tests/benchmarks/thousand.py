"""The site with many models: `python tests/benchmarks/thousand.py [227 500 1000]`, from the repository; takes minutes.

To the presets that are there come synthetic ones, each a copy of one of them with another vocabulary, every tenth in a
family of its own: no two give the same table. For each number of models: processor time of a clean build and of one
with kept results, memory, bytes of a model's page around its article, of the checked claims and of the site, how soon
the preview shows its first page and a save, and its memory once all pages are there.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from copies import environment, whole  # noqa: E402
from fuzz.saves import Serve  # noqa: E402

OPEN = "models/llama/llama3-8b/"


def synthetic(folder: Path, models: int) -> None:
    """Add presets until there are so many."""
    presets = sorted((folder / "macros/presets").rglob("*.toml"))
    sized = [path for path in presets if re.search(r"^vocab_size = \d", path.read_text("utf-8"), re.M)]
    for n, preset in zip(range(models - len(presets)), itertools.cycle(sized)):
        text = preset.read_text("utf-8").split("\n[published")[0]
        text = re.sub(r"^vocab_size = (\d+)", lambda m: f"vocab_size = {int(m[1]) + 64 * (n + 1)}", text, flags=re.M)
        text = re.sub(r"^(hub|licence_looked_at|aliases|headline) = (\[[^]]*\]|.*)\n", "", text, flags=re.M)
        text = re.sub(r'^name = "(.*)"', rf'name = "\1 with vocabulary {n}"', text, count=1, flags=re.M)
        text = re.sub(r'^names = "published"', 'names = "transformers"', text, flags=re.M)
        to = preset.with_stem(f"{preset.stem}-vocabulary-{n}")
        if n % 10 == 0:
            text = re.sub(r'^family = ".*"', f'family = "Synthetic {n}"', text, count=1, flags=re.M)
            to = preset.parents[1] / f"synthetic-{n}" / to.name
        to.parent.mkdir(exist_ok=True)
        to.write_text(text, "utf-8")


def built(folder: Path) -> tuple[float, float]:
    """A build in a process of its own: seconds of the processor, MiB at most."""
    with (folder.parent / "build.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "-q"],
            cwd=folder,
            env=environment(SITE_URL="", PYTHONPATH="."),
            stdout=log,
            stderr=log,
        )
        _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit((folder.parent / "build.log").read_text()[-3000:])
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def outside(page: str) -> int:
    """Bytes of a page that are not its article."""
    article = re.search(r"<article.*</article>", page, re.S)
    return len(page.encode()) - (len(article[0].encode()) if article else 0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", type=int, nargs="*", default=[227, 500, 1000])
    print(f"{'models':>8}{'clean build':>13}{'kept':>9}{'memory':>10}{'around':>9}{'claims':>9}{'site':>9}"
          f"{'first page':>12}{'save':>8}{'preview':>11}")  # fmt: skip
    for models in parser.parse_args().models:
        with tempfile.TemporaryDirectory() as temporary:
            folder = whole(Path(temporary) / "site", "tests/golden")
            synthetic(folder, models)
            (clean, memory), (kept, _) = built(folder), built(folder)
            site = folder / "site"
            around = statistics.median(outside(path.read_text("utf-8")) for path in site.rglob("models/*/*/index.html"))
            claims = (site / "checked-claims/index.html").stat().st_size
            size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
            start = time.perf_counter()
            server = Serve(folder, 600)
            try:
                server.shows(OPEN, "parameters", 600)
                first = time.perf_counter() - start
                server.shows("data/v1/gpt2.json", "gpt2", 600)  # all pages are there
                status = Path(f"/proc/{server.process.pid}/status").read_text()
                shown = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024
                preset = folder / "macros/presets/llama/llama3-8b.toml"
                start = time.perf_counter()
                preset.write_text(preset.read_text("utf-8").replace('"Meta"', '"Another"', 1), "utf-8")
                server.shows(OPEN, "by Another", 600)
                saved = time.perf_counter() - start
            finally:
                server.stop()
            print(
                f"{models:8}{clean:11.1f} s{kept:7.1f} s{memory:6.0f} MiB{around / 1e3:6.0f} kB{claims / 1e3:6.0f} kB"
                f"{size / 1e6:6.0f} MB{first:10.1f} s{saved:6.2f} s{shown:7.0f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
