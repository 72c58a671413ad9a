"""From a save to the new content, painted in an open tab: the live preview beside plain `mkdocs serve`, alternately on
two copies of the whole site.

    python tests/benchmarks/preview.py [--rounds 3] [--saves 200] [--mistakes 20] [--gone 20]

The tab is Chromium's. `whole` is the time until a page that no tab has open is new, too. Plain means: the same hooks
and modules, without macros/site/mkdocs/preview/, not published. `--saves` saves that often in a row and prints the
memory and the open files of the process. `--mistakes` saves a good text, a mistake and its mend in turns, that
often for each kind of mistake. `--gone` renames a page and a family's folder of presets, and
back, that often, and makes a mistake right after each of as many starts.
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager, suppress

from playwright.sync_api import Error, sync_playwright

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/site")]
os.environ["PUBLISHED"] = "no"  # a published page’s policy lets no script of the server’s run

from test_preview import Serve, rewrite  # noqa: E402


def copy(folder: pathlib.Path) -> pathlib.Path:
    for name in ("docs", "macros", "tests/golden"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", folder / "mkdocs.yml")
    return folder


KINDS = {  # what is saved, the text before and after in round n, the page that is open, what it shows then
    "a page": ("docs/index.md", r"\Z", "\nSaved {n}.\n", "", "Saved {n}."),
    "a preset": (
        "macros/presets/llama/llama3-8b.toml",
        'organization = "[^"]*"',
        'organization = "Maker {n}"',
        "models/llama/llama3-8b/",
        "by Maker {n},",
    ),
    "a module that three pages use": (
        "macros/views/guide/matmul.py",
        r"\Z",
        "\n# {n}\n",
        "models/llama/llama3-8b/",
        "",
    ),
    "a module": (  # that all model pages use
        "macros/views/models/model_page.py",
        r", released\w*( \{)",
        r", releasedX{n}\1",
        "models/llama/llama3-8b/",
        "releasedX{n} ",
    ),
    "the module that all else is made of": ("macros/engine/dims.py", r"\Z", "\n# {n}\n", "models/llama/llama3-8b/", ""),
    "mkdocs.yml": (
        "mkdocs.yml",
        "site_name: .*",
        "site_name: Every Parameter {n}",
        "models/llama/llama3-8b/",
        "Every Parameter {n}",
    ),
}
MISTAKES = {  # what is written at the end of a page, and what its tab says then
    "a macro that there is not": ('{{ parms("gpt2") }}', "parms"),
    "a model that there is not": ('{{ params("gpt-22") }}', "gpt-22"),
    "Jinja": ("{% if %}", "docs/costs/kv-cache.md:"),
    "an image that is missing": ("![A picture](missing-{n}.png)", "missing-{n}.png leads nowhere"),
    "an anchor that is missing": ("[There](#missing-{n})", "missing-{n}"),
    "a box of no kind": ("!!! nothing{n}\n    Text.", "nothing{n}"),
}
GONE = (  # what is renamed, its file or folder, and an address that is gone with it
    ("a page", "docs/costs/kv-cache.md", "costs/kv-cache/"),
    ("a family of models", "macros/presets/talkie", "models/talkie/talkie-1930-13b/"),
)
PAGE = "costs/kv-cache/"
OTHER = "data/v1/gpt2.json"  # waits for its build like a page, and does not count as one that is open


def save(server: Serve, kind: str, n: int) -> None:
    name, old, new, _, _ = KINDS[kind]
    path = server.folder / name
    text = path.read_text("utf-8")
    path.write_text(re.sub(old, new.replace("{n}", str(n)), text, count=1), "utf-8")


# In each page from its first byte on: when it was first painted with the text that the tab waits for.
PROBE = """
const look = () => {
  if (!document.body?.textContent.includes(sessionStorage.shown)) return
  observer.disconnect()
  requestAnimationFrame(() => setTimeout(() => (sessionStorage.painted ??= performance.timeOrigin + performance.now())))
}
const observer = new MutationObserver(look)
if ("shown" in sessionStorage) observer.observe(document, { childList: true, subtree: true })
"""


def seen(server: Serve, tab, kind: str, n: int) -> tuple[float, float]:
    """Seconds from a save until the open tab has painted it, and until all other pages have it."""
    page, shown = KINDS[kind][3:]
    tab.goto(server.address + page)
    time.sleep(1)  # the tab asks for news
    before, start = server.epoch(), time.time()
    painted = until_painted(tab, shown.replace("{n}", str(n)), lambda: save(server, kind, n))
    server.epoch(before)
    server.get(OTHER)
    return painted, time.time() - start


def until_painted(tab, shown: str, save) -> float:
    """Seconds from a save until the open tab has painted a text."""
    tab.evaluate("shown => { sessionStorage.shown = shown; delete sessionStorage.painted }", shown)
    start = time.time()
    save()
    painted = None
    while not painted:
        time.sleep(0.05)
        with suppress(Error):  # it is being loaded
            painted = tab.evaluate("sessionStorage.painted")
    return float(painted) / 1000 - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--saves", type=int, default=0)
    parser.add_argument("--mistakes", type=int, default=0)
    parser.add_argument("--gone", type=int, default=0)
    options = parser.parse_args()
    if options.gone:
        return gone(options.gone)
    is_alone = options.saves or options.mistakes
    with started(("preview",) if is_alone else ("preview", "plain")) as (servers, tabs):
        if options.mistakes:
            return mistakes(servers["preview"], tabs["preview"], options.mistakes)
        if options.saves:
            return many(servers["preview"], options.saves)
        print(f"{'saved':40}{'preview':>10}{'(whole)':>10}{'plain':>10}{'ratio':>8}")
        for kind in KINDS:
            times = {name: [] for name in servers}
            for n in range(options.rounds):
                for name, server in servers.items():
                    times[name].append(seen(server, tabs[name], kind, n))
            fast, slow = (statistics.median(t for t, _ in times[name]) for name in ("preview", "plain"))
            whole = statistics.median(t for _, t in times["preview"])
            print(f"{kind:40}{fast:8.2f} s{whole:8.2f} s{slow:8.2f} s{slow / fast:8.1f}", flush=True)


@contextmanager
def started(names: tuple[str, ...]):
    """Servers of copies of the site, and a tab of each, once all pages are there."""
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        servers, tabs = {}, {}
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            for name in names:
                folder = copy(pathlib.Path(temporary) / name / "site")
                if name == "plain":
                    rewrite(folder / "macros/site/mkdocs/hooks.py", "    preview.on_startup(command)", "    pass")
                start = time.perf_counter()
                servers[name], tabs[name] = Serve(folder, 300), browser.new_page()
                tabs[name].add_init_script(PROBE)
                print(f"{name}: served after {time.perf_counter() - start:.1f} s")
                servers[name].get(OTHER)
            yield servers, tabs
        finally:
            for server in servers.values():
                server.stop()
            browser.close()


def ratios(kinds: tuple[str, ...], rounds: int) -> dict[str, list[float]]:
    """By the kind of save, the time of plain `mkdocs serve` to that of the preview, in turns."""
    with started(("preview", "plain")) as (servers, tabs):
        times = {
            kind: [
                [seen(servers[name], tabs[name], kind, n)[0] for name in ("plain", "preview")] for n in range(rounds)
            ]
            for kind in kinds
        }
    return {kind: [plain / fast for plain, fast in both] for kind, both in times.items()}


def gone(rounds: int) -> None:
    """Seconds until an address answers 404 or answers again, and until a mistake of the first minute is told."""
    with started(("preview",)) as (servers, _):
        server = servers["preview"]
        for what, name, address in GONE:
            path = server.folder / name
            away = path.with_name(f"renamed-{path.name}")
            times: list[list[float]] = [[], []]
            for _ in range(rounds):
                for seconds, old, new in zip(times, (path, away), (away, path), strict=True):
                    server.get(OTHER)  # all pages are built
                    time.sleep(1)
                    seconds.append(until_answered(server, address, new == away, lambda a=old, b=new: a.rename(b)))
            print(f"{what:40}{''.join(map(column, times))}", flush=True)
    seconds = []
    for n in range(max(1, rounds // 4)):
        with tempfile.TemporaryDirectory() as temporary:
            server = Serve(copy(pathlib.Path(temporary) / "site"), 300)
            try:
                page = server.folder / "docs/costs/kv-cache.md"
                while "</html>" not in server.get(PAGE):  # the first page that somebody opens
                    time.sleep(0.05)
                with page.open("a", encoding="utf-8") as text:
                    text.write(f"\n![A picture](missing-{n}.png)\n")
                start = time.time()
                while f"missing-{n}.png leads nowhere" not in server.get(PAGE):
                    time.sleep(0.05)
                seconds.append(time.time() - start)
            finally:
                server.stop()
    print(f"{'a mistake right after the start':40}{column(seconds)}", flush=True)


def until_answered(server: Serve, address: str, is_gone: bool, change) -> float:
    """Seconds from a change until an address answers 404, or a page again."""
    start = time.time()
    change()
    while server.get(address).startswith("404") != is_gone:
        time.sleep(0.05)
    return time.time() - start


def mistakes(server: Serve, tab, rounds: int) -> None:
    """Seconds until a tab has painted a good text, a mistake and its mend, median and most, in turns."""
    path = server.folder / "docs/costs/kv-cache.md"
    text = path.read_text("utf-8")
    tab.goto(server.address + PAGE)
    print(f"{'saved':40}{'good':>16}{'told':>16}{'mended':>16}")
    for kind, (written, told) in MISTAKES.items():
        times: list[list[float]] = [[], [], []]
        for n in range(rounds):
            turns = (f"Good {n}.", f"Good {n}."), (written, told), (f"Mended {n}.", f"Mended {n}.")
            for seconds, (line, shown) in zip(times, turns, strict=True):
                time.sleep(1)  # the tab asks for news
                line, shown = line.replace("{n}", str(n)), shown.replace("{n}", str(n))
                seconds.append(until_painted(tab, shown, lambda now=f"{text}\n{line}\n": path.write_text(now, "utf-8")))
        print(f"{kind:40}{''.join(map(column, times))}", flush=True)


def column(seconds: list[float]) -> str:
    """The median and the most."""
    return f"{statistics.median(seconds):7.2f} ({max(seconds):4.2f}) s"


def many(server: Serve, saves: int) -> None:
    process = pathlib.Path(f"/proc/{server.process.pid}")
    for n in range(saves):
        before = server.epoch()
        save(server, ("a page", "a preset", "a page", "a module that three pages use")[n % 4], n)
        server.epoch(before)
        server.get("")
        if n % 20 == 19:
            memory = int(re.search(r"VmRSS:\s*(\d+)", (process / "status").read_text())[1])
            print(
                f"{n + 1:4} saves: {memory / 1024:.0f} MiB, {len(list((process / 'fd').iterdir()))} open files, "
                f"{len(list((process / 'task').iterdir()))} threads",
                flush=True,
            )


if __name__ == "__main__":
    main()
