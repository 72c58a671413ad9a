"""Puts faults into a copy, one after another, and prints those that no test sees.

python -m tests.mutation [--way affected|command|gate] [--night DAY] [--only WORD] [--record]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from . import ROOT, Fault, drop, faults, stale, tenth
from .record import record

# What each way runs. `gate` takes every case of every test that the fault reaches, as .ci/run does, the nearest first.
WAYS = {
    "affected": ("--affected", "-m", "not browser"),
    "command": ("-m", "not browser"),
    "gate": ("--affected", "--few", "0"),
}
SECONDS = {"affected": 900, "command": 1800, "gate": 3600}


def copied(folder: Path) -> Path:
    """A copy of what git knows of the working tree, with a history of one commit, from which a fault differs."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    for command in (["init", "-q", "-b", "trial"], ["add", "-A"], [*who, "commit", "-q", "-m", "Without a fault"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def first_failure(copy: Path, way: str, workers: str, left_out: set[str]) -> str:
    """The test that fails, or what ends the run otherwise; empty if all pass."""
    without = [f"--deselect={name}" for name in sorted(left_out)]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", workers, *WAYS[way], *without]
    variables = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": ""}
    try:
        done = subprocess.run(command, cwd=copy, env=variables, capture_output=True, text=True, timeout=SECONDS[way])
    except subprocess.TimeoutExpired:
        return "no end"
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    failed = [line.split(" ")[1].partition("[")[0] for line in lines]  # without its case, which may have spaces
    return "" if done.returncode in (0, 5) else (failed or ["the run itself"])[0]


def fails_anyway(copy: Path, name: str) -> bool:
    """Whether a test fails without a fault too."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--few", "0", name]
    return "::" in name and bool(subprocess.run(command, cwd=copy, capture_output=True).returncode)


def tried(those: list[Fault], way: str, workers: str) -> Iterator[tuple[Fault, bool]]:
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        copy, left_out = copied(Path(folder)), set()
        for fault in those:
            path, began = copy / fault.file, time.monotonic()
            source = path.read_text("utf-8")
            while True:
                path.write_text(source.replace(fault.old, fault.new), "utf-8")
                failed = first_failure(copy, way, workers, left_out)
                path.write_text(source, "utf-8")
                if not failed or not fails_anyway(copy, failed):
                    break
                print(f"left out, since it fails without a fault too: {failed}", flush=True)
                left_out.add(failed)
            said = f"{time.monotonic() - began:4.0f} s {fault}"
            print(f"seen  {said}  {failed}" if failed else f"LIVES {said}", flush=True)
            yield fault, bool(failed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", choices=WAYS, default="affected")
    parser.add_argument("--night", type=int, metavar="DAY", help="a tenth: the one of this day; 0 for today")
    parser.add_argument("--only", default="", metavar="WORD", help="faults whose line has this word")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one of N")
    parser.add_argument("--workers", default="auto", metavar="N")
    parser.add_argument("--drop-stale", action="store_true", help="take faults out whose text has gone")
    parser.add_argument("--record", action="store_true", help="add the share that is seen to the page of benchmarks")
    options = parser.parse_args()
    those = [fault for fault in faults() if options.only in str(fault)][:: options.every]
    if (wrong := stale(those)) and options.drop_stale:
        drop({line.rpartition(" (its text")[0] for line in wrong})
        sys.exit("\n".join(["taken out; write others of these kinds:", *wrong]))
    if wrong:
        sys.exit("\n".join(["no longer as written, mend faults.toml:", *wrong]))
    if options.night is not None:
        those = tenth(those, options.night or date.today().toordinal())
    seen = [is_so for _, is_so in tried(those, options.way, options.workers)]
    print(f"{options.way}: {sum(seen)} of {len(seen)} seen ({sum(seen) / max(len(seen), 1):.0%})")
    if options.record:
        record(options.way, sum(seen), len(seen))


if __name__ == "__main__":
    main()
