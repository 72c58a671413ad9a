"""How a phone loads a page of each kind: `python tests/benchmarks/lighthouse.py [SITE] [PATH...]`, from the repository.

Serves a built site (site/; for the page of a wrong address built with SITE_URL=http://127.0.0.1/below/a/path/)
compressed, as a host does, and has Lighthouse look at it as on a phone; prints its four figures, and what keeps them
from 100. Needs Chromium and npx, which fetches Lighthouse from npm’s registry. A busy machine lowers the first figure:
a page that is short of it is looked at up to three times, and the best counts; with it stands Lighthouse's own measure
of the machine. Exits 1 where it is below 99, or another below 100.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from urllib.parse import urljoin

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinds import KINDS
from serving import Handler, served

LIGHTHOUSE = "lighthouse@12.8.2"
RUNS = 3
WANTED = {"performance": 99, "accessibility": 100, "best-practices": 100, "seo": 100}


@cache
def compressed(path: str) -> bytes:
    return gzip.compress(Path(path).read_bytes())


class Compressing(Handler):
    """A host that compresses what is text, and keeps a connection open."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.translate_path(self.path)
        if os.path.isdir(path):
            path = os.path.join(path, "index.html")
        if not os.path.isfile(path):
            return self.send_error(404)
        is_packed = path.endswith((".woff2", ".png"))
        content = Path(path).read_bytes() if is_packed else compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=600")
        if not is_packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(content)


def look_at(address: str, folder: Path) -> dict:
    """Lighthouse's report on a page."""
    report = folder / "report.json"
    flags = "--headless=new --no-sandbox --disable-gpu"
    call = ["npx", "--yes", LIGHTHOUSE, address, "--quiet", "--output=json", f"--output-path={report}"]
    call += [f"--chrome-flags={flags}", f"--only-categories={','.join(WANTED)}"]
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    subprocess.run(call, check=True, env={**os.environ, **({"CHROME_PATH": chromium} if chromium else {})})
    return json.loads(report.read_text("utf-8"))


def figures_of(report: dict) -> dict[str, int]:
    return {name: round(100 * report["categories"][name]["score"]) for name in WANTED}


def best(address: str, folder: Path) -> dict:
    """The best of several reports, or the first that is not short of anything."""
    reports: list[dict] = []
    while len(reports) < RUNS and not any(figures_of(r)["performance"] >= WANTED["performance"] for r in reports):
        reports.append(look_at(address, folder))
    return max(reports, key=lambda report: figures_of(report)["performance"])


def short_of_100(report: dict, category: str) -> list[str]:
    """What costs a figure its last points."""
    audits = [(ref["weight"], report["audits"][ref["id"]]) for ref in report["categories"][category]["auditRefs"]]
    return [
        f"{audit['id']} {audit.get('displayValue', '')}".strip()
        for weight, audit in audits
        if weight and audit["score"] is not None and audit["score"] < 1
    ]


def main(site: str = "site", *paths: str) -> int:
    is_short = False
    print(f"{'':36}", *(f"{name:>15}" for name in (*WANTED, "machine")))
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = stack.enter_context(served(site, Compressing))
        for path in paths or KINDS:
            report = best(urljoin(address, path), folder)
            figures = figures_of(report)
            machine = round(report["environment"]["benchmarkIndex"])
            print(f"{path or 'home':36}", *(f"{figure:15}" for figure in (*figures.values(), machine)), flush=True)
            for name, figure in figures.items():
                is_short |= figure < WANTED[name]
                if figure < 100:
                    print(f"    {name}: {'; '.join(short_of_100(report, name))}", flush=True)
    return int(is_short)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
