"""The macros' share of the site build: `python tests/benchmarks/site.py`, from the repository.

Builds the site without kept results and with them, and the same pages with every macro call already written out (and
every generated file already there), and compares the processor's times, which a busy machine distorts least, and those
by the clock, of which a second process saves. Each build is a process of its own; best of several. The pages that are
written out are read with our extensions, and once more without the one by which large elements go around Markdown: as
any site with such tables would have them read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
RUNS = 3

# A hook that runs after all others: it writes each page as it is after its macros, and each generated file.
CAPTURE = """
import pathlib, shutil
from mkdocs.plugins import event_priority
import yaml
OUT, SITE = pathlib.Path({out!r}), pathlib.Path({site!r})

def on_config(config):
    from macros.site.mkdocs import pages
    del pages.on_page_markdown_early  # it would hand on no Markdown

@event_priority(-100)
def on_page_markdown(markdown, page, config, files):
    path = OUT / page.file.src_uri
    path.parent.mkdir(parents=True, exist_ok=True)
    said = {{name: str(value) if isinstance(value, str) else value for name, value in page.meta.items()}}
    meta = yaml.safe_dump(said) if said else ""
    path.write_text(f"---\\n{{meta}}---\\n{{markdown}}" if meta else markdown, encoding="utf-8")

@event_priority(-100)
def on_post_build(config):
    for file in config["_files"]:
        path = OUT / file.src_uri
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((SITE / file.dest_uri).read_bytes())

@event_priority(-100)
def on_files(files, config):
    config["_files"] = [f for f in files if not f.is_documentation_page() and f.inclusion.is_included()
                        and not f.dest_uri.startswith("search/") and (f.generated_by or f.src_dir == config.docs_dir)]
"""


def build(what: str, work: Path) -> None:
    """One build: the site itself, the site with its pages captured, or the pages written out, read plainly too."""
    from mkdocs.commands.build import build as mkdocs_build
    from mkdocs.config import load_config

    options = {"site_dir": str(work / f"site-{what}")}
    if what == "capture":
        hook = work / "capture.py"
        hook.write_text(CAPTURE.format(out=str(work / "pages"), site=options["site_dir"]))
        options |= {"hooks": [str(ROOT / "macros" / "site" / "mkdocs" / "hooks.py"), str(hook)]}
    elif what in ("written", "plain"):
        options |= {"docs_dir": str(work / "pages"), "plugins": [], "hooks": [], "nav": None}
    config = load_config(str(ROOT / "mkdocs.yml"), **options)
    if what == "plain":
        config.markdown_extensions.remove("every_parameter.site.extensions.large_blocks")
    used, start = sum(os.times()[:4]), time.perf_counter()
    config.plugins.on_startup(command="build", dirty=False)
    mkdocs_build(config)
    config.plugins.on_shutdown()
    print(json.dumps([sum(os.times()[:4]) - used, time.perf_counter() - start]))


def timed(what: str, work: Path, kept: str = "yes") -> tuple[float, float]:
    """Seconds of the processor, of a second process too, and by the clock."""
    done = subprocess.run(
        [sys.executable, __file__, what, str(work)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "SITE_URL": "", "KEPT": kept},
    )
    if done.returncode:
        sys.exit(f"{what}: {done.stderr[-2000:]}")
    processor, clock = json.loads(done.stdout.splitlines()[-1])
    return processor, clock


def ratios(work: Path) -> dict[str, list[float]]:
    """Build without kept results and with them, each to the pages written out, in turns, by the processor's time."""
    timed("capture", work)
    found: dict[str, list[float]] = {"clean build": [], "second build": []}
    for _ in range(RUNS):
        written, _ = timed("written", work)
        for name, kept in (("clean build", "no"), ("second build", "yes")):
            processor, _ = timed("site", work, kept)
            found[name].append(processor / written)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        timed("capture", work)
        pages = len(list((work / "pages").rglob("*.md")))
        clean, kept, written = [], [], []
        for _ in range(RUNS):  # in turns, so that a busy machine slows all
            clean.append(timed("site", work, "no"))
            kept.append(timed("site", work))
            written.append(timed("written", work))
        plain = [timed("plain", work)]
        for n, of in enumerate(("of the processor", "by the clock")):
            least = min(one[n] for one in written)
            times = {"without kept results": clean, "with them": kept, "written out and read plainly": plain}
            best = {what: min(one[n] for one in all_of_them) for what, all_of_them in times.items()}
            said = ", ".join(f"{seconds:.1f} s {what} ({seconds / least:.2f})" for what, seconds in best.items())
            print(f"{pages} pages, {of}: {least:.1f} s written out, {said}")


if __name__ == "__main__":
    build(sys.argv[1], Path(sys.argv[2])) if len(sys.argv) == 3 else main()
