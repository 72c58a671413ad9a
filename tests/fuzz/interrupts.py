"""Ctrl-C at any moment of any command, as a process of its own: it ends soon, and says nothing."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from macros.catalogue.checkpoints import SHIPPED

from . import Case

ROOT = Path(__file__).parent.parent.parent
COMMANDS = (
    ["describe", "gpt2", "llama3-8b"],
    ["describe", "kimi-k2", "--format=json"],
    ["compare", "qwen3-8b", "llama3.1-8b", "deepseek-v3"],
    ["what-if", "llama3-8b", "--set", "n_layers=64", "--on=h100"],
    ["fits", "llama3.3-70b", "--on=h100"],
    ["check"],
    ["run", "capitals", "--text=The capital of France is", "--generate=8"],
    ["totals", str(SHIPPED["capitals"])],
    ["schema"],
)


def draw(rng: random.Random) -> Case:
    return {"command": rng.choice(COMMANDS), "after": round(rng.uniform(0.06, 1.2), 3)}


def smaller(case: Case) -> Iterator[Case]:
    yield from ()


def trial(case: Case, folder: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "macros", *case["command"]]
    with (folder / "err").open("w+b") as err:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=err)
        while b"one_package" not in (folder / "err").read_bytes() and process.poll() is None:
            time.sleep(0.001)  # until the package's own lines run: before, Python itself is interrupted
        time.sleep(case["after"] - 0.06)
        process.send_signal(signal.SIGINT)
        status = process.wait(60)  # ten are too few on a busy machine
        err.seek(0)
        lines = [line for line in err.read().decode().splitlines() if not line.startswith("import time:")]
    # While Python itself ends, its own handler is gone.
    assert status in (0, 1, 130, -signal.SIGINT), (status, lines[-3:])
    assert not any("Traceback" in line or "Exception ignored" in line for line in lines), "\n".join(lines)[-2000:]
